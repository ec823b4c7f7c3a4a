/** Our client as the conformance suite uses it: signed in where the server asks for it, every tool called, what it asks answered. */
import { type ToolOutcome, idOf } from '../../src/tools/tool.ts'
import { toolParameters } from '../../src/tools/tool-schema.ts'
import { type McpBench, batchOf, openMcpBench } from './mcp-bench.ts'

export interface Scenario {
  name: string
  /** The address of the suite's server. */
  url: string
  /** The client that the suite registered. */
  context: {
    client_id?: string
    client_secret?: string
    private_key_pem?: string
    signing_algorithm?: string
  }
}

/** The address that the suite takes for that of our description. */
const DOCUMENT = 'https://conformance-test.local/client-metadata.json'
/** More than our client may ask for: the suite counts. */
const MAX_SIGN_INS = 6

/** Rejects when the server could not be used; the suite knows whether that is right. */
export async function runScenario({ name, url, context }: Scenario): Promise<string[]> {
  await using bench = openMcpBench(
    { server: { url, readOnly: 'as-announced', ...authOf(name, context) } },
    { documentUrl: DOCUMENT },
  )
  const said: string[] = []
  let signIns = 0
  if ((await bench.tools()).has('server::connect')) {
    const outcome = await batchOf(await bench.tools()).call('connect_server', {})
    await signIn(bench, url, outcome)
    signIns++
  }
  const tools = await bench.tools()
  const batch = batchOf(tools, { answer: () => ({ allowed: true, by: 'user', content: {} }) })
  for (const tool of tools.listTools()) {
    if (idOf(tool) === 'server::connect') await signInUntilItHelps(bench, url)
    const names = Object.keys(toolParameters(tool.input)['properties'] ?? {})
    const args = Object.fromEntries(names.map((argument) => [argument, 2]))
    let outcome = await batch.call(tool.name, args)
    for (; linkOf(outcome) !== undefined && signIns < MAX_SIGN_INS; signIns++) {
      await signIn(bench, url, outcome)
      outcome = await batch.call(tool.name, args)
    }
    said.push(`${tool.name}: ${outcome.forModel}`)
  }
  const [state] = await bench.mcp.servers.states('u_test', new AbortController().signal)
  if (state?.state === 'unavailable') throw new Error(state.why)
  return said
}

/** Signs in again until the tools are there. */
async function signInUntilItHelps(bench: McpBench, url: string): Promise<void> {
  for (let times = 0; times < MAX_SIGN_INS; times++) {
    const tools = await bench.tools()
    if (!tools.has('server::connect')) return
    const outcome = await batchOf(tools).call('connect_server', {})
    if (linkOf(outcome) === undefined) return
    await signIn(bench, url, outcome)
  }
}

/** The suite's authorization server agrees at once, and sends the user back with a redirect. */
async function signIn(bench: McpBench, url: string, outcome: ToolOutcome): Promise<void> {
  const link = linkOf(outcome)
  if (link === undefined) throw new Error(`no link: ${outcome.forModel}`)
  const response = await fetch(link, { redirect: 'manual' })
  const { searchParams } = new URL(response.headers.get('location') ?? '', url)
  const signedIn = await bench.mcp.finishSignIn('u_test', searchParams)
  if ('problem' in signedIn) throw new Error(`${signedIn.problem} ${JSON.stringify(bench.logged.slice(-1))}`)
}

function linkOf(outcome: ToolOutcome): string | undefined {
  return (outcome.data as { connect?: { url: string } } | undefined)?.connect?.url
}

function authOf(name: string, { client_id, client_secret, private_key_pem }: Scenario['context']): object {
  if (!name.startsWith('auth/')) return {}
  const own = {
    clientId: client_id,
    clientSecret: client_secret,
  }
  if (!name.startsWith('auth/client-credentials')) return { auth: { type: 'oauth', ...own } }
  const key = private_key_pem === undefined ? {} : { privateKey: private_key_pem }
  return { auth: { type: 'client-credentials', ...own, ...key } }
}
