def test_spark_runs_here(spark):
    assert spark.range(10).mapInArrow(lambda batches: batches, "id long").count() == 10
