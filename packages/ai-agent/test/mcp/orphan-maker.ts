/** An agent that starts a server which ignores the end of its stdin and TERM, says its processes, and waits to be killed. */
import { batchOf, openMcpBench, scripted } from './mcp-bench.ts'

const bench = openMcpBench({ s: scripted('stubborn') })
const { forModel } = await batchOf(await bench.tools()).call('child', {})
process.stdout.write(forModel)
setInterval(() => undefined, 1_000)
