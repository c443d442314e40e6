"""A server of the newer generation, made with the package `mcp`: over stdio, or with a port over HTTP."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("weather")


@server.tool()
def forecast(city: str) -> str:
    """Says what the weather will be."""
    return f"sunny in {city}"


@server.resource("note://{name}")
def note(name: str) -> str:
    """A note."""
    return f"the note {name}"


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run("stdio")
