"""Campaigns: the promises of docs/trust.md under long, random, hostile use. `make campaign NAME=flips COUNT=100000`."""
