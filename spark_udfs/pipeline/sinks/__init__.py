"""Where rows go: each sink writes a micro-batch, and knows one that is done again."""
