"""The operations: one module per area, each public function one scenario, told in raw requests."""
