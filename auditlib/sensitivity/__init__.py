"""Does a benchmark need what it shows? Answers under changed images and questions."""
