/**
 * The audit log: its lines (actor, act, subject, origin) and its queries. A line has no secret's
 * value and no text of a chat.
 */
import { z } from 'zod'
import type { AuditFrom } from '../account/agent-user.ts'

/** Kinds of acts on a chat. */
const ABOUT_CHATS = [
  'chat_deleted',
  'shared',
  'unshared',
  'snapshot_made',
  'snapshot_removed',
  'approval_answered',
] as const

/** Kinds of acts, by the page's groups. */
const AUDIT_GROUPS = {
  sign_in: [
    'signed_in',
    'sign_in_failed',
    'signed_out',
    'sign_in_ended',
    'second_factor_on',
    'second_factor_off',
    'second_factor_removed',
    'password_changed',
    'password_reset_sent',
    'password_reset',
    'provider_linked',
    'provider_unlinked',
  ],
  people: [
    'person_added',
    'person_changed',
    'person_removed',
    'invitation_made',
    'invitation_revoked',
    'invitation_accepted',
    'team_made',
    'team_renamed',
    'team_removed',
    'team_member_added',
    'team_member_removed',
  ],
  keys: ['key_made', 'key_deleted', 'secret_set', 'secret_removed'],
  chats: [...ABOUT_CHATS, 'rule_made', 'rule_revoked'],
  sandbox: [
    'host_refused',
    'terminal_opened',
    'terminal_closed',
    'exec_started',
    'exec_ended',
    'sandbox_reset',
    'sandbox_stopped',
  ],
  administration: [
    'settings_changed',
    'settings_removed',
    'instructions_changed',
    'endpoint_changed',
    'endpoint_removed',
    'prompt_stopped',
    'server_changed',
    'server_removed',
    'rules_changed',
    'retention_changed',
    'retention_run',
    'audit_exported',
    'data_exported',
    'backup_made',
    'backup_failed',
    'backup_restored',
  ],
} as const

type AuditGroup = keyof typeof AUDIT_GROUPS
export type AuditKind = (typeof AUDIT_GROUPS)[AuditGroup][number]

/** A person by their name at that time; `OPERATOR` and `SANDLOT` are not persons. */
interface AuditActor {
  id: string
  name: string
  email?: string | undefined
}

/** A command of `./sandlot` on the host. */
export const OPERATOR: AuditActor = { id: 'operator', name: 'Operator, by the command line' }
/** Sandlot itself, for example by a schedule. */
export const SANDLOT: AuditActor = { id: 'sandlot', name: 'Sandlot' }
export const NOT_SIGNED_IN: AuditActor = { id: '', name: 'Not signed in' }

/** Small facts before or after an act. Never a secret’s value or the text of a chat. */
export type AuditFacts = Readonly<Record<string, unknown>>

/** A caller's part of a line; the writer adds the time, the number and the hash. */
export interface NewAudit {
  who: AuditActor
  from?: AuditFrom | undefined
  what: AuditKind
  /** The subject: an id, and its name at that time. */
  whom?: { id?: string | undefined; name?: string | undefined } | undefined
  before?: AuditFacts | undefined
  after?: AuditFacts | undefined
  /** The number of acts in one line; absent: one. */
  count?: number | undefined
}

/** The writing process. Each writes into its own database, as its own chain. */
export const auditSource = z.enum(['service', 'agent'])
export type AuditSource = z.infer<typeof auditSource>

const facts = z.record(z.string(), z.unknown()).nullable()
const auditEntry = z.object({
  source: auditSource,
  /** From 1, dense in its source. */
  seq: z.int(),
  /** Epoch milliseconds. */
  at: z.number(),
  who: z.object({ id: z.string(), name: z.string(), email: z.string().nullable() }),
  from: z.object({
    address: z.string().nullable(),
    key: z.string().nullable(),
    signIn: z.string().nullable(),
  }),
  /** Includes kinds of newer versions. */
  what: z.string(),
  whom: z.object({ id: z.string().nullable(), name: z.string().nullable() }),
  before: facts,
  after: facts,
  count: z.int(),
  /** SHA-256 over the previous hash and this line, hex. */
  hash: z.string(),
})
export type AuditEntry = z.infer<typeof auditEntry>

/** The chat of a line. Chats removed with their owner are only counted. */
export function chatIdOf({ what, who, whom }: AuditEntry): string | undefined {
  return ABOUT_CHATS.some((kind) => kind === what) && who.id !== SANDLOT.id
    ? (whom.id ?? undefined)
    : undefined
}

/** `GET /api/admin/audit` (administrators), newest first, of both processes. */
export const auditPage = z.object({
  entries: z.array(auditEntry),
  /** Titles by id, of chats that the reader sees; null: no title yet. */
  chats: z.record(z.string(), z.string().nullable()).default({}),
  /** `cursor` of the next page; null: there is none. */
  next: z.string().nullable(),
})
export type AuditPage = z.infer<typeof auditPage>

/** `GET /api/admin/audit` and, without `cursor` and `limit`, `GET /api/admin/audit/export`. */
export const auditAsk = z.object({
  /** Name, address or id of the actor, or a part of it. */
  who: z.string().max(200).optional(),
  /** Anywhere in the line. */
  text: z.string().max(200).optional(),
  /** Comma-separated kinds. */
  what: z.string().max(2_000).optional(),
  /** Epoch milliseconds, both included. */
  from: z.coerce.number().int().optional(),
  to: z.coerce.number().int().optional(),
  cursor: z.string().max(100).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
})
export type AuditAsk = z.infer<typeof auditAsk>

const chainPoint = z.object({ seq: z.int(), hash: z.string() })
/** `GET /api/admin/audit/chains`: reads every line of both. */
export const auditChains = z.object({
  chains: z.array(
    z.object({
      source: auditSource,
      lines: z.int(),
      /** The last line that retention removed; number 0: none. */
      anchor: chainPoint,
      /** The last line. */
      head: chainPoint,
      /** Sentences; empty: no manual changes were found. */
      problems: z.array(z.string()),
      problemCount: z.int(),
    }),
  ),
})
export type AuditChains = z.infer<typeof auditChains>
