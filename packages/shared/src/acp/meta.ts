/**
 * Extensions of ACP between our service and our ai-agent: `_meta.sandlot` of requests, and
 * extension methods. A client that sends `clientCapabilities._meta.sandlot: {version: 1}` gets our
 * events unchanged.
 */
import { z } from 'zod'
import { fullImageState, removedData } from '../account/api.ts'
import { ERROR_CODES } from '../base/errors.ts'
import { forkRequest, renameRequest } from '../chat/chat-api.ts'
import { chatMarks, project, projectId } from '../chat/chats.ts'
import { mode } from '../chat/mode.ts'
import { newComment, sharesAsk, snapshotsAsk } from '../chat/shares.ts'
import {
  effectiveSettingsView,
  idList,
  offeredSettings,
  settingsSubject,
  settingsView,
} from '../account/agent-settings.ts'
import { agentUser } from '../account/agent-user.ts'
import { endpointRequest, endpointTestRequest } from '../account/models-api.ts'
import { role } from '../account/role.ts'
import { sessionSummary, watchedPaths } from '../chat/frames.ts'
import { messageId, requestId, sessionId } from '../base/ids.ts'
import { editedInput, follows, onError, unqueuedWhy } from '../chat/sandlot-event.ts'
import { modelAbout, modelChoice } from '../chat/model-choice.ts'
import { questionContent } from '../chat/question.ts'

/** People and teams by id. */
const readers = z.object({ people: z.array(z.string()), teams: z.array(z.string()) })
export type Readers = z.infer<typeof readers>

/** `_meta.sandlot` of `session/new`. */
export const newSessionMeta = z.object({
  user: agentUser,
  sessionId: sessionId.optional(),
  /** The requested mode: refused above the ceiling. */
  mode: mode.optional(),
  /**
   * The mode for a caller that names none, instead of the deployment's default: lowered to the
   * ceiling.
   */
  defaultMode: mode.optional(),
  ...modelChoice,
  /** The user's project that contains the session. */
  project: z.string().max(64).optional(),
})
/**
 * `_meta.sandlot` of `session/load`: all settled events after `after`, those in flight, then the
 * live tail.
 */
export const loadSessionMeta = z.object({ user: agentUser, after: z.number().int().nonnegative().default(0) })
/**
 * `_meta.sandlot` of `session/prompt`. `unattended`: no client can answer an approval, so it is
 * denied at once. `onError`: the effect of a failed call, default `continue`; any client may send
 * it.
 */
export const promptMeta = z.object({
  user: agentUser,
  requestId: requestId.optional(),
  whenBusy: z.enum(['steer', 'queue', 'refuse']).default('steer'),
  unattended: z.boolean().optional(),
  onError: onError.optional(),
  /** See `prompt_started`. */
  follows: follows.optional(),
})
/** `_meta.sandlot` of `session/prompt` from other clients. Its answer then carries the reason. */
export const foreignPromptMeta = z.looseObject({
  sandlot: z.looseObject({ onError: onError.optional() }).optional(),
})
/**
 * `_meta.sandlot` of the answer to `session/prompt`. `duplicate`: the request id was submitted
 * before.
 */
export const promptResultMeta = z.object({
  promptId: z.string(),
  reason: z.string(),
  duplicate: z.boolean().optional(),
})

/** Extension requests (client → agent). */
export const EXT = {
  /**
   * Answer an approval, any time, from any device:
   * `{sessionId, toolCallId, optionId, reason?, input?, user}` → `{answered, by?}`.
   */
  approve: '_sandlot/approve',
  /** Pending approvals (`pending-approvals.ts`): `{sessionId, user}` → `{approvals}`. */
  approvals: '_sandlot/approvals',
  /** Cancel one call of a running prompt: `{sessionId, toolCallId, user}` → `{}`. */
  cancelCall: '_sandlot/cancel_call',
  /**
   * Withdraw a queued message: `{sessionId, messageId, user}` → `{why}`; `sent`: the agent had read
   * it. Idempotent.
   */
  unqueue: '_sandlot/unqueue',
  /** Shares of a session: `{sessionId, ask, user}` → `ShareList`. */
  shares: '_sandlot/shares',
  /**
   * Links to snapshots of a session (`chat/shares.ts`): `{sessionId, ask, user}` → `SnapshotList`.
   */
  snapshots: '_sandlot/snapshots',
  /** A comment: `{sessionId, commentId, text, mentions, user}` → `{}`. Idempotent. */
  comment: '_sandlot/comment',
  /** Notification client → agent: this user is typing: `{sessionId, user}`. */
  typing: '_sandlot/typing',
  /** Notification agent → client: no more events of this session: `{sessionId, why}`. */
  sessionClosed: '_sandlot/session_closed',
  /** A user's marks on chats (`chat/chats.ts`): `{user, marks}` → `{}`. */
  markChats: '_sandlot/mark_chats',
  /** A user's projects: `{user, ask}` → `{projects}`. */
  projects: '_sandlot/projects',
  /** Rename a session: `{sessionId, title, user}` → `{}`. */
  rename: '_sandlot/rename',
  /**
   * Continue from a prompt in a new session: `{sessionId, promptId, where, user}` → `{sessionId}`.
   */
  fork: '_sandlot/fork',
  /** A user's rules: list, add, revoke, preview (`account/rules-api.ts`): `{user, ask}`. */
  rules: '_sandlot/rules',
  /**
   * A user's secrets by name: list, set, remove (`account/secrets.ts`): `{user, ask}` →
   * `{secrets}`, without values.
   */
  secrets: '_sandlot/secrets',
  /**
   * A user's workspace (`workspace/files.ts`): list a directory, read a part of a file, write one:
   * `{user, ask}`.
   */
  files: '_sandlot/files',
  /**
   * Workspace directories that a page shows, relative; an empty list: none: `{user, paths}` → `{}`.
   */
  watch: '_sandlot/watch',
  /** Notification agent → client: contents of these directories may have changed: `{paths}`. */
  filesChanged: '_sandlot/files_changed',
  /**
   * Programs that listen in a user's sandbox (`workspace/ports.ts`): list, connect: `{user, ask}`.
   */
  ports: '_sandlot/ports',
  /** A user's terminals (`workspace/terminals.ts`): list, open, attach, close: `{user, ask}`. */
  terminals: '_sandlot/terminals',
  /** A user's sandbox (`workspace/sandbox.ts`): view, reset, stop, its processes: `{user, ask}`. */
  sandbox: '_sandlot/sandbox',
  /** A user's command, without a model (`workspace/exec.ts`): `{user, command, …}` → `{ticket}`. */
  exec: '_sandlot/exec',
  /** Redirect back from an MCP server's sign-in: `{user, answer}` → `{server}` or `{problem}`. */
  mcpSignIn: '_sandlot/mcp_sign_in',
  /** A user's instructions (`account/instructions.ts`): `{user, text?}` → `{text}`. */
  instructions: '_sandlot/instructions',
  /**
   * Remove a user; `purge` also deletes their chats and files: `{userId, data}` → `{}`. Idempotent.
   */
  removePerson: '_sandlot/remove_person',
  /**
   * Settings for teams and users, for administrators; a user's own effective settings, for
   * everyone: `settingsParams` → `settingsAnswer`.
   */
  settings: '_sandlot/settings',
  /**
   * Model endpoints (`account/models-api.ts`), for administrators: `{user, ask}` → `ModelsView`, or
   * `EndpointTestResult` for `test`.
   */
  models: '_sandlot/models',
  /** A user's daily and monthly limits (`admin/usage.ts`): `{user}` → `BudgetList`. */
  budgets: '_sandlot/budgets',
  /** Retention (`admin/retention.ts`), for administrators: `{user, ask}`. */
  retention: '_sandlot/retention',
  /** Running and queued prompts, for administrators: `{user, ask}` → `AgentOverview`. */
  overview: '_sandlot/overview',
  /** Statistics of tools (`admin/tool-stats.ts`), for administrators: `{user}`. */
  toolStats: '_sandlot/tool_stats',
  /** All sandboxes (`admin/sandboxes.ts`), for administrators: `{user, ask}`. */
  sandboxes: '_sandlot/sandboxes',
  /** Rules of the deployment (`admin/deployment-rules.ts`), for administrators: `{user, ask}`. */
  deploymentRules: '_sandlot/deployment_rules',
  /** The agent's settings (`admin/configuration.ts`), for administrators: `{user}`. */
  configuration: '_sandlot/configuration',
  /**
   * MCP servers added on the page (`admin/mcp-servers.ts`), a user's own and the deployment's:
   * `{user, ask}` → `ServersView`, `serverStatus` for `test`, `serverSignIn` for `sign_in`.
   */
  mcpServers: '_sandlot/mcp_servers',
  /**
   * Changed facts of a user: `{userId, email, role, teams}` → `{}`. Later requests carry them too.
   */
  putPerson: '_sandlot/put_person',
  /**
   * Teams of the agent's configuration file, for the accounts to adopt: `{adopted?}` → `{teams}`.
   * `adopted`: ids of teams whose members the accounts now manage.
   */
  teamSeeds: '_sandlot/team_seeds',
  /**
   * One prompt as a record: `{sessionId, promptId, user}` → `{}`, after the JSON document in pieces
   * (`exportPiece`); `not_found` when there is none.
   */
  exportPrompt: '_sandlot/export_prompt',
  /**
   * Notification agent → client: `{text}`, the next piece of the document that this connection
   * requested.
   */
  exportPiece: '_sandlot/export_piece',
  /**
   * `{}` → counters since the agent started (`agentMetrics`): tool names and numbers, no user data.
   */
  metrics: '_sandlot/metrics',
  /** `{}` → `{ready, reasons, model: {name, demo}, defaultMode}`. */
  status: '_sandlot/status',
  /**
   * Notification agent → our clients: several `session/update` of one session: `{sessionId,
   * updates}`.
   */
  sessionUpdates: '_sandlot/session_updates',
  /**
   * Notification agent → client, if `initialize` requested it: a session's summary changed:
   * `{userId, summary}`.
   */
  sessionChanged: '_sandlot/session_changed',
  /**
   * Notification agent → client: the prompt was accepted and stored:
   * `{sessionId, promptId, requestId?}`.
   */
  promptAccepted: '_sandlot/prompt_accepted',
} as const

/**
 * Next to `/acp` on the agent's socket: `/stream/<ticket>` is a WebSocket for bytes. A ticket is
 * valid once, for its request, within 30 seconds.
 */
export const STREAM_PATH = '/stream/'
export const streamTicket = z.object({ ticket: z.string() })

/** `answer`: the query string of the redirect. */
export const mcpSignInParams = z.object({ user: agentUser, answer: z.string().max(8_192) })
export const mcpSignInResult = z.union([z.object({ server: z.string() }), z.object({ problem: z.string() })])

/** `handOver`: the user who receives the shared chats; absent: their shares end. */
export const removePersonParams = z.object({
  userId: z.string().min(1).max(128),
  data: removedData,
  handOver: z.string().min(1).max(128).optional(),
})

export const putPersonParams = z.object({
  userId: z.string().min(1).max(128),
  email: z.string().max(254).optional(),
  role,
  teams: z.array(z.string().min(1).max(128)).max(1_000),
})
export const teamSeedsParams = z.object({ adopted: idList.optional() })
export const teamSeedsResult = z.object({
  /** `members`: ids and addresses. */
  teams: z.array(z.object({ id: z.string(), name: z.string(), members: idList })),
})
export type TeamSeeds = z.infer<typeof teamSeedsResult>
export const settingsParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('list') }),
    /** `teams`: the person's. */
    z.object({ do: z.literal('get'), subject: settingsSubject, teams: idList.optional() }),
    /** `name`: the team's. */
    settingsView.extend({
      do: z.literal('put'),
      subject: settingsSubject,
      name: z.string().max(100).optional(),
    }),
    z.object({ do: z.literal('remove'), subject: settingsSubject }),
    z.object({ do: z.literal('rename'), subject: settingsSubject, name: z.string().max(100) }),
    /** Effective settings of a person with this address and these teams. */
    z.object({
      do: z.literal('effective'),
      userId: z.string().min(1).max(128),
      email: z.string().max(254).optional(),
      teams: idList,
    }),
    /** The user's own effective settings. */
    z.object({ do: z.literal('own') }),
  ]),
})
export type SettingsAsk = z.infer<typeof settingsParams>['ask']
/** Each ask returns one of them. `conflict`: the stored revision differs from that of the `put`. */
export const settingsAnswer = z.object({
  view: settingsView.optional(),
  /** Next to a requested `view`: the effective settings without it. */
  without: effectiveSettingsView.optional(),
  offered: offeredSettings.optional(),
  conflict: settingsView.optional(),
  effective: effectiveSettingsView.optional(),
  all: z.array(z.object({ subject: settingsSubject, revision: z.int() })).optional(),
})
export type SettingsAnswer = z.infer<typeof settingsAnswer>

export const modelsParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('list') }),
    /** `id` absent: a new one. */
    endpointRequest.extend({ do: z.literal('put'), id: z.string().max(100).optional() }),
    z.object({ do: z.literal('remove'), id: z.string().max(100) }),
    endpointTestRequest.extend({ do: z.literal('test') }),
  ]),
})

export const budgetsParams = z.object({ user: agentUser })
export const overviewParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('view') }),
    z.object({ do: z.literal('stop'), promptId: z.string().max(128) }),
    /** Findings of the agent's own checks. */
    z.object({ do: z.literal('check') }),
  ]),
})
export type OverviewAsk = z.infer<typeof overviewParams>['ask']

export const approveParams = z.object({
  user: agentUser,
  sessionId,
  toolCallId: z.string(),
  optionId: z.string(),
  reason: z.string().optional(),
  content: questionContent.optional(),
  /** With an option that allows once: the call runs with these arguments instead. */
  input: editedInput.optional(),
  /** False: an answer that makes a rule for later sessions is `forbidden`. */
  mayMakeRules: z.boolean().default(true),
})
export const approvalsParams = z.object({ user: agentUser, sessionId })
/** `answered: false` when an earlier answer won; `by`: its author. */
export const approveResult = z.object({ answered: z.boolean(), by: z.string().optional() })
export const cancelCallParams = z.object({ user: agentUser, sessionId, toolCallId: z.string() })
export const unqueueParams = z.object({ user: agentUser, sessionId, messageId })
export const unqueueResult = z.object({ why: unqueuedWhy })
export const exportPromptParams = z.object({ user: agentUser, sessionId, promptId: z.string().max(200) })
export const exportPiece = z.object({ text: z.string() })

/** `_sandlot/mark_chats`. */
export const markChatsParams = z.object({ user: agentUser, marks: chatMarks })
/** `_sandlot/projects`. */
export const projectsParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('put'), project }),
    z.object({ do: z.literal('remove'), id: projectId }),
  ]),
})

const milliseconds = z.number().nonnegative()
/**
 * `text`: Prometheus format. `eventLoopDelayMs`: blocking of the event loop since the last request.
 */
export const agentMetrics = z.object({
  text: z.string(),
  eventLoopDelayMs: z.object({ p50: milliseconds, p99: milliseconds, max: milliseconds }),
})
export type AgentMetricsAnswer = z.infer<typeof agentMetrics>
export const renameParams = renameRequest.extend({ user: agentUser, sessionId })
export const sharesParams = z.object({ user: agentUser, sessionId, ask: sharesAsk })
export const snapshotsParams = z.object({ user: agentUser, sessionId, ask: snapshotsAsk })
export const commentParams = z.object({ user: agentUser, sessionId, ...newComment.shape })
export const watchParams = z.object({ user: agentUser, paths: watchedPaths })
export const filesChanged = z.object({ paths: z.array(z.string()) })
export const typingParams = z.object({ user: agentUser, sessionId })
/** `unshared`: this user may not see it any more. */
export const sessionClosed = z.object({ sessionId, why: z.enum(['unshared']) })
export const forkParams = forkRequest.extend({ user: agentUser, sessionId })
/**
 * `clientCapabilities._meta.sandlot` of our service. `sessionChanges`: it subscribes to every
 * session list.
 */
export const serviceCapability = z.looseObject({
  version: z.literal(1),
  sessionChanges: z.boolean().optional(),
})
export const sessionUpdates = z.object({ sessionId, updates: z.array(z.unknown()) })
/**
 * `userId`: the owner. `sharedWith`: others who see it. `unsharedFrom`: others who saw it until now
 * and, unless in `sharedWith`, no longer do.
 */
export const sessionChanged = z.object({
  userId: z.string(),
  summary: sessionSummary,
  sharedWith: readers.optional(),
  unsharedFrom: readers.optional(),
})
export type SessionChanged = z.infer<typeof sessionChanged>
export const promptAccepted = z.object({ sessionId, promptId: z.string(), requestId: z.string().optional() })
export const agentStatus = z.object({
  ready: z.boolean(),
  reasons: z.array(z.object({ part: z.string(), ok: z.boolean(), message: z.string() })),
  /** `images`: whether it accepts them. */
  model: z.object({ name: z.string(), demo: z.boolean(), images: z.boolean().optional() }),
  /** All models that a session may choose, the deployment's own first. */
  models: z.array(modelAbout).optional(),
  defaultMode: mode,
  /** State of the larger sandbox image, while it is being built or after that failed. */
  fullImage: fullImageState.optional(),
})
export type AgentStatus = z.infer<typeof agentStatus>

/**
 * `data` of a JSON-RPC error from our agent: its stable code. The message is then safe to show.
 * `session/new` with an existing session id answers `conflict`; a session of another user is always
 * `not_found`. `not_owner` adds the id of the replica that owns the user, if one does.
 */
export const rpcErrorData = z.object({ code: z.enum(ERROR_CODES), replica: z.string().optional() })
