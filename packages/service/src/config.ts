/** What an operator can set for the service. The only file here that reads the environment. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readConfig, wholeNumber } from '@sandlot/shared/config'
import type { Environment } from '@sandlot/shared/config'
import { z } from 'zod'

const httpUrl = z
  .url({ protocol: /^https?$/, error: 'must be an http(s) address like https://chat.example.org' })
  .transform((url) => new URL(url).origin)

const variables = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: wholeNumber(0, 65_535).default(8002),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  SANDLOT_DATA: z.string().default('./.sandlot'),
  SANDLOT_PUBLIC_URL: httpUrl.optional(),
  SANDLOT_ALLOWED_ORIGINS: z
    .string()
    .default('')
    .transform((list) => list.split(',').map((origin) => origin.trim()))
    .transform((list) => list.filter((origin) => origin !== ''))
    .pipe(z.array(httpUrl)),
  SANDLOT_AGENT_URL: z
    .string()
    .regex(/^(ws|wss|ws\+unix):/, 'must be ws://…, wss://… or ws+unix:///path/agent.sock:/acp')
    .optional(),
  SANDLOT_SESSIONS_DB: z.string().optional(),
  SANDLOT_WEB_DIST: z.string().optional(),
  SANDLOT_METRICS_TOKEN: z.string().min(16, 'must have at least 16 characters').optional(),
})

export interface ServiceConfig {
  host: string
  /** 0: any free port. */
  port: number
  logLevel: string
  /** Absolute. */
  dataFolder: string
  /** Origin of the address people type, where it is not host and port. */
  publicUrl: string | undefined
  allowedOrigins: string[]
  agentUrl: string
  /** Of ai-agent; absolute. */
  sessionsFile: string
  /** Folder of the built web app. */
  webDist: string
  metricsToken: string | undefined
}

/** @throws ConfigError with every problem at once. */
export function readServiceConfig(env: Environment = process.env): ServiceConfig {
  const read = readConfig(variables, env, (path) => readFileSync(path, 'utf8'))
  const dataFolder = resolve(read.SANDLOT_DATA)
  return {
    host: read.HOST,
    port: read.PORT,
    logLevel: read.LOG_LEVEL,
    dataFolder,
    publicUrl: read.SANDLOT_PUBLIC_URL,
    allowedOrigins: read.SANDLOT_ALLOWED_ORIGINS,
    agentUrl: read.SANDLOT_AGENT_URL ?? `ws+unix://${join(dataFolder, 'run', 'agent.sock')}:/acp`,
    sessionsFile: resolve(read.SANDLOT_SESSIONS_DB ?? join(dataFolder, 'sessions.db')),
    webDist: resolve(read.SANDLOT_WEB_DIST ?? join(import.meta.dirname, '../../web/dist')),
    metricsToken: read.SANDLOT_METRICS_TOKEN,
  }
}
