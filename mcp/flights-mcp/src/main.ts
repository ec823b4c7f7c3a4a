#!/usr/bin/env node
/** Runs the server: MCP on stdin and stdout, its log on stderr. */
import { makeLog } from '@sandlot/mcp-kit/log'
import { serveTool } from '@sandlot/mcp-kit/serve'
import { messageOf } from '@sandlot/shared/base/errors'
import { readFlightsConfig } from './config.ts'
import { searchFlights } from './search-flights.ts'

try {
  const config = readFlightsConfig()
  const log = makeLog('flights-mcp', config.token === undefined ? [] : [config.token])
  serveTool({ name: 'flights-mcp', version: '0.1.0' }, searchFlights({ config, now: Date.now }), log)
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`)
  process.exitCode = 1
}
