"""Parts that all HTTP servers share: access check, limits, response cache, error responses, server start and stop."""
