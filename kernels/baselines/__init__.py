"""What the structures are compared with: nothing prepared, every answer prepared, and the search tree of PSoup."""
