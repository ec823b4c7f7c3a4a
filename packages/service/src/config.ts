/** Settings of the service. The only file here that reads the environment. */
import { readFileSync } from 'node:fs'
import type { BlockList } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { ConfigError, originOf, readConfig, settingRows, settingSchema } from '@sandlot/shared/config'
import { settingNames } from '@sandlot/shared/config/settings'
import type { Environment } from '@sandlot/shared/config'
import { readKeysFolder } from '@sandlot/shared/node/secret-file'
import { type OtherSettings, type SettingRow, otherSettings } from '@sandlot/shared/admin/configuration'
import { BACKUP_STATUS_FILE } from '@sandlot/shared/admin/backup-status'
import { type OidcProviderConfig, readOidcProviders } from '@sandlot/shared/account/oidc-config'
import type { LocalSignIn } from '@sandlot/shared/account/sign-in-api'
import { z } from 'zod'
import { trustedProxies, trustedProxyNames } from './auth/trusted-proxies.ts'
import type { MailSettings } from './notifications/mail.ts'

const readText = (path: string): string => readFileSync(path, 'utf8')

/** The mail server: host, port and sign-in; the default port may be left out. */
const smtpUrl = z
  .url({
    protocol: /^smtps?$/,
    error: 'must be smtp://user:password@mail.example.org:587 or smtps://…',
  })
  .transform((text, context) => {
    const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(text)
    const secure = protocol === 'smtps:'
    const user = decoded(username)
    const pass = decoded(password)
    if (user === undefined || pass === undefined)
      context.addIssue('has a % that escapes nothing; write %25 for a % in the password')
    else if (hostname === '') context.addIssue('names no host')
    else if ((user === '') !== (pass === ''))
      context.addIssue('must have both a user and a password, or neither')
    else if ((pathname !== '' && pathname !== '/') || search !== '' || hash !== '')
      context.addIssue('ends after the host and the port; write %2F, %3F and %23 for / ? # in the password')
    else
      return {
        host: hostname.replace(/^\[|\]$/g, ''),
        port: port === '' ? (secure ? 465 : 587) : Number(port),
        secure,
        auth: user === '' ? undefined : { user, pass },
      }
    return z.NEVER
  })

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** `Sandlot <sandlot@example.org>`, or the address alone. */
const sender = z
  .string()
  .transform((text) => /^(?:([^<>\p{Cc}]*)<([^<>]*)>|([^<>]*))$/u.exec(text.trim()))
  .transform((found) => ({
    name: found?.[1]?.trim() || 'Sandlot',
    address: found?.[2] ?? found?.[3] ?? '',
  }))
  .pipe(
    z.object({
      name: z.string(),
      address: z.email('must be sandlot@example.org or Sandlot <sandlot@example.org>'),
    }),
  )

/** Entries of a list with commas between. */
const list = z
  .string()
  .default('')
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .transform((entries) => entries.filter((entry) => entry !== ''))

/** Values with a form of their own, beyond what a row of the settings says. */
const variables = settingSchema('service').extend({
  SANDLOT_ALLOWED_ORIGINS: list.pipe(z.array(originOf)),
  SANDLOT_TRUSTED_PROXIES: trustedProxyNames,
  SANDLOT_OIDC: z
    .string()
    .optional()
    .transform((text, context): OidcProviderConfig[] => {
      if (text === undefined) return []
      const read = readOidcProviders(text, readText)
      if ('providers' in read) return read.providers
      for (const message of read.problems) context.addIssue({ code: 'custom', message })
      return z.NEVER
    }),
  SANDLOT_SMTP_URL: smtpUrl.optional(),
  SANDLOT_MAIL_FROM: sender.optional(),
  SANDLOT_ALERT_EMAIL: list
    .transform((addresses) => [...new Set(addresses)])
    .pipe(z.array(z.email('must be addresses like ops@example.org, with commas between'))),
})

export interface ServiceConfig {
  host: string
  /** 0: any free port. */
  port: number
  logLevel: string
  /** Absolute. */
  dataFolder: string
  /** Absolute; where its secrets are, the same for services that share a database. */
  keysFolder: string
  /** Origin of the address people type, where it is not host and port. */
  publicUrl: string | undefined
  allowedOrigins: string[]
  /** Proxies that say by `X-Forwarded-For` from where a request comes. */
  trustedProxies: BlockList
  /** Below it each preview has a host of its own; undefined: below `localhost`, if that is us. */
  previewHost: string | undefined
  agentUrl: string
  /** The token presented to agents on other hosts; undefined: the one in the folder of keys. */
  agentToken: string | undefined
  /** Path of `accounts.db`, or address of PostgreSQL. */
  accounts: string
  /** The same of ai-agent’s `sessions.db`. */
  sessions: string
  /** The status file of the last backup, in the folder of ai-agent’s data. */
  backupStatusFile: string
  /** Folder of the built web app. */
  webDist: string
  metricsToken: string | undefined
  /** Undefined: no e-mail is sent. */
  mail: MailSettings | undefined
  /** Recipients of alerts. */
  alerts: { email: string[]; webhook: URL | undefined }
  /** By which people sign in, beside their passwords. */
  providers: readonly OidcProviderConfig[]
  localSignIn: LocalSignIn
  /** All of it for people, with where each value comes from. */
  settings: readonly SettingRow[]
  /** Settings of processes that this one does not know; null: unknown. */
  otherSettings: OtherSettings | null
}

/** @throws ConfigError with every problem at once. */
export function readServiceConfig(env: Environment = process.env): ServiceConfig {
  const read = readConfig(variables, env, readText)
  const { SANDLOT_SMTP_URL: smtp, SANDLOT_MAIL_FROM: from } = read
  if (smtp !== undefined && from === undefined)
    throw new ConfigError(['SANDLOT_MAIL_FROM: must be set where SANDLOT_SMTP_URL is'])
  const { SANDLOT_ALERT_EMAIL: email, SANDLOT_ALERT_WEBHOOK: webhook } = read
  if (smtp === undefined && email.length > 0)
    throw new ConfigError(['SANDLOT_ALERT_EMAIL: needs a mail server, SANDLOT_SMTP_URL'])
  const dataFolder = resolve(read.SANDLOT_DATA)
  const problems: string[] = []
  const keysFolder = readKeysFolder(dataFolder, read.SANDLOT_KEYS_DIR, 'service-cookies', problems)
  if (problems.length > 0) throw new ConfigError(problems)
  const sessionsFile = resolve(read.SANDLOT_SESSIONS_DB ?? join(dataFolder, 'sessions.db'))
  return {
    host: read.HOST,
    port: read.PORT,
    logLevel: read.LOG_LEVEL,
    dataFolder,
    keysFolder,
    publicUrl: read.SANDLOT_PUBLIC_URL,
    allowedOrigins: read.SANDLOT_ALLOWED_ORIGINS,
    trustedProxies: trustedProxies(read.SANDLOT_TRUSTED_PROXIES, read.SANDLOT_PUBLIC_URL),
    previewHost: read.SANDLOT_PREVIEW_HOST,
    agentUrl: read.SANDLOT_AGENT_URL ?? `ws+unix://${join(dataFolder, 'run', 'agent.sock')}:/acp`,
    agentToken: read.SANDLOT_AGENT_TOKEN,
    accounts: read.DATABASE_URL ?? join(dataFolder, 'accounts.db'),
    backupStatusFile: join(dirname(sessionsFile), BACKUP_STATUS_FILE),
    sessions: read.DATABASE_URL ?? sessionsFile,
    webDist: resolve(read.SANDLOT_WEB_DIST ?? join(import.meta.dirname, '../../web/dist')),
    metricsToken: read.SANDLOT_METRICS_TOKEN,
    mail: smtp === undefined || from === undefined ? undefined : { ...smtp, from },
    alerts: { email, webhook: webhook === undefined ? undefined : new URL(webhook) },
    providers: read.SANDLOT_OIDC,
    localSignIn: read.SANDLOT_LOCAL_SIGN_IN,
    settings: settingRows(settingNames('service'), env),
    otherSettings: readOthers(read.SANDLOT_OTHER_SETTINGS),
  }
}

/** Filled in by the launcher; that of another version has no meaning. */
function readOthers(text: string | undefined): OtherSettings | null {
  try {
    return otherSettings.parse(JSON.parse(text ?? 'null'))
  } catch {
    return null
  }
}
