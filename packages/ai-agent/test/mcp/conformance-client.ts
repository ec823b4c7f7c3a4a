/** Our client as the conformance suite runs it: one server at the given address, signed in where it asks, every tool called. */
import { toolParameters } from '../../src/tools/tool-schema.ts'
import { batchOf, openMcpBench } from './mcp-bench.ts'

const url = process.argv.at(-1) ?? ''
const wantsSignIn = (process.env['MCP_CONFORMANCE_SCENARIO'] ?? '').startsWith('auth/')
const server = { url, readOnly: 'as-announced', ...(wantsSignIn ? { auth: { type: 'oauth' } } : {}) }
const bench = openMcpBench({ server })

/** The suite's authorization server agrees at once, and sends the user back with a redirect. */
async function signIn(): Promise<void> {
  const outcome = await batchOf(await bench.tools()).call('connect_server', {})
  const { connect } = (outcome.data ?? {}) as { connect?: { url: string } }
  if (connect === undefined) throw new Error(`no link: ${outcome.forModel}`)
  const response = await fetch(connect.url, { redirect: 'manual' })
  const { searchParams } = new URL(response.headers.get('location') ?? '', url)
  const signedIn = await bench.mcp.finishSignIn('u_test', searchParams)
  if ('problem' in signedIn) throw new Error(signedIn.problem)
}

if (wantsSignIn) await signIn()
const tools = await bench.tools()
for (const tool of tools.listTools()) {
  const args = Object.fromEntries(
    Object.keys(toolParameters(tool.input)['properties'] ?? {}).map((name) => [name, 2]),
  )
  const { forModel } = await batchOf(tools).call(tool.name, args)
  process.stderr.write(`${tool.name}: ${forModel}\n`)
}
await bench.close()
process.exit(0)
