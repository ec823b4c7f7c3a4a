/** A server that speaks the revision of July 2026 and none before it: for tests of clients. */
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

serveStdio(
  () => {
    const server = new McpServer({ name: 'modern', version: '1' }, { capabilities: { tools: {} } })
    const inputSchema = z.object({ text: z.string() })
    server.registerTool('say', { description: 'Says it again.', inputSchema }, ({ text }) => ({
      content: [{ type: 'text', text }],
    }))
    return server
  },
  { legacy: 'reject' },
)
