"""The databases of ``DecisionTable``: their statements, and their drivers."""
