// What the conformance suite runs as the client: it only tells the test where the suite's server is, and waits. So our
// client runs in the test's own process, and a scenario costs no second start of everything.
const [, , runner, url] = process.argv
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context = '{}' } = process.env
const response = await fetch(runner, {
  method: 'POST',
  body: JSON.stringify({ url, scenario, context: JSON.parse(context) }),
})
process.stderr.write(await response.text())
process.exit(response.ok ? 0 : 1)
