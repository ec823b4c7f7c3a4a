#!/usr/bin/env node
/** The server as a process: MCP on stdin and stdout, its log on stderr. */
import { makeLog } from '@sandlot/mcp-kit/log'
import { serveTool } from '@sandlot/mcp-kit/serve'
import { messageOf } from '@sandlot/shared/base/errors'
import { readCalendarConfig } from './config.ts'
import { listEvents } from './list-events.ts'

try {
  const config = readCalendarConfig()
  const log = makeLog('google-calendar-mcp', config.secrets)
  serveTool({ name: 'google-calendar-mcp', version: '0.1.0' }, listEvents({ config, now: Date.now }), log)
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`)
  process.exitCode = 1
}
