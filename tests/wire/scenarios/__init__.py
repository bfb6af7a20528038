"""The scenarios: one module per area, one public function per scenario, written as raw requests."""
