"""The web console: pages that `towpath up` serves, and what they ask for. docs/console.md describes it."""
