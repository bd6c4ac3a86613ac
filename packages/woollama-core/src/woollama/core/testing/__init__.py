"""The public test kit: strict fakes, golden exchanges, contract suites."""
