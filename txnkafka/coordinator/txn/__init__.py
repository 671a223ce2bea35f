"""The transaction coordinator: states, decisions, markers and producer ids."""
