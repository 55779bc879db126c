"""What differs between two audits of a benchmark, or between two versions of its dataset."""
