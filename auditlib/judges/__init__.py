"""Models as judges: how their scores, votes and choices hold up, and what a decision of theirs is worth."""
