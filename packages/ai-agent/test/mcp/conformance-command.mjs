// The client that the conformance suite runs: it only reports the address of the suite's server, and waits. So our
// client runs in the test's own process, and a scenario costs no second start of everything.
const [, , runner, url] = process.argv
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context = '{}' } = process.env
const response = await fetch(runner, {
  method: 'POST',
  body: JSON.stringify({ url, scenario, context: JSON.parse(context) }),
})
process.stderr.write(await response.text())
process.exit(response.ok ? 0 : 1)
