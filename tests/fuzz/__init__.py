"""Fuzzing: drive everything at random for as long as there is time, and keep the smallest case of every failure.

python -m tests.fuzz --minutes 10 --jobs 2 [--only engine,filters] [--seed 7]

targets/     what is driven, and what every answer must be: a strategy of cases and a check of one case each
target.py    what a target is
hunt.py      one target under Hypothesis: rounds of new examples, known failures passed over, new ones shrunk
failure.py   a failure: how it is told from others, and the script that shows it
worker.py    a process that takes its targets in turns
overseer.py  starts the workers, outlives their crashes, prints what they report
"""
