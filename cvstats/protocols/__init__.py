"""The estimators: each chooses on some samples, judges on others, and says so in a few lines."""
