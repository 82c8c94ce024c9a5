"""Arrays in, arrays out: the jitted structures behind swag's windows. Nothing here knows Arrow, queries or Spark.

Rooms, and what each may import:

    compile < operators < rings < windows < stored < ticks      aggregates over windows: of live and of stored events
              operators < rings < baselines                     what those are compared with
              operators < key_filters, frames                   conditions on keys; frames
    compile < keys                                              keys to ids
"""
