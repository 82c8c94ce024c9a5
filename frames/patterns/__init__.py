"""What a pattern means, before there are events: its text, its automaton, and the conditions of its symbols.

reading.py       "A B+ C" as a tree, and back
automaton.py     which symbol may follow which, in order of preference
transitions.py   the same as a table: one step per event, whatever the match (or None: it would be too large)
conditions.py    DEFINE and MEASURES: what rows alone decide, and what the match so far does
comparisons.py   those that only compare numbers
programs.py      conditions over the match so far as programs, for kernels/frames/backtracking.py
compiled.py      all of it, of a spec
rows.py          rows of events as the search for matches wants them
"""
