/**
 * Every extension request to an agent: its params, and what sender and agent do with it. The
 * handlers of ai-agent and the rows of `actions.ts` are checked against this table.
 */
import { z } from 'zod'
import { instructionsParams } from './account/instructions.ts'
import { rulesParams } from './account/rules-api.ts'
import { secretsParams } from './account/secrets.ts'
import {
  EXT,
  approvalsParams,
  approveParams,
  budgetsParams,
  cancelCallParams,
  commentParams,
  exportPromptParams,
  forkParams,
  markChatsParams,
  mcpSignInParams,
  modelsParams,
  overviewParams,
  projectsParams,
  putPersonParams,
  removePersonParams,
  renameParams,
  settingsParams,
  sharesParams,
  snapshotsParams,
  teamSeedsParams,
  unqueueParams,
  watchParams,
} from './acp/meta.ts'
import { GUEST_ERRORS } from './base/guest-errors.ts'
import { configurationParams } from './admin/configuration.ts'
import { deploymentRulesParams } from './admin/deployment-rules.ts'
import { mcpServersParams } from './admin/mcp-servers.ts'
import { retentionParams } from './admin/retention.ts'
import { sandboxesParams } from './admin/sandboxes.ts'
import { toolStatsParams } from './admin/tool-stats.ts'
import { execParams } from './workspace/exec.ts'
import { filesParams } from './workspace/files.ts'
import { portsParams } from './workspace/ports.ts'
import { sandboxParams } from './workspace/sandbox.ts'
import { terminalsParams } from './workspace/terminals.ts'

export interface AgentRequest {
  params: z.ZodType
  /**
   * May be sent again although it may have taken effect: it only reads, or has the same result when
   * it runs twice. Acts: those of `ask.do` that may.
   */
  repeatable?: true | readonly string[]
  /**
   * `subject`: for the agent of the user in `userId`, `ask.userId` or `ask.userIds`. Absent: of the
   * owner of `sessionId`, else of the asking user, else any. Administration goes to the
   * administrator's own agent: any would do, and there they see at once what they have changed.
   */
  addressee?: 'subject'
  /** About what one person has: the agent claims the person first. */
  claims?: true
  /** Editors may not send it. */
  serviceOnly?: true
  /** Absent: every role that `guests` does not refuse. */
  role?: 'admin'
  /** The error for guests. Absent: they may send it. */
  guests?: string
}

/** The acts of `ask.do` in these params. Undefined: there is no `ask`. */
type ActOf<Params> = Params extends { ask: { do: infer Act } } ? Act : undefined

type Rest<Params> = Omit<AgentRequest, 'params' | 'repeatable'> & {
  repeatable?: true | readonly Extract<ActOf<Params>, string>[]
}

function request<Params extends z.ZodType>(params: Params, rest: Rest<z.output<Params>> = {}) {
  return { params, ...rest }
}

type Notification =
  | 'typing'
  | 'sessionClosed'
  | 'filesChanged'
  | 'exportPiece'
  | 'sessionUpdates'
  | 'sessionChanged'
  | 'promptAccepted'

const files = { claims: true, guests: GUEST_ERRORS.files } as const
const sandbox = { claims: true, serviceOnly: true, guests: GUEST_ERRORS.sandbox } as const

const AGENT_REQUESTS = {
  [EXT.approve]: request(approveParams),
  [EXT.approvals]: request(approvalsParams, { repeatable: true }),
  [EXT.cancelCall]: request(cancelCallParams, { repeatable: true }),
  [EXT.unqueue]: request(unqueueParams, { repeatable: true }),
  [EXT.shares]: request(sharesParams, { repeatable: ['list'] }),
  [EXT.snapshots]: request(snapshotsParams, { repeatable: ['list'] }),
  [EXT.comment]: request(commentParams, { repeatable: true }),
  [EXT.markChats]: request(markChatsParams, { repeatable: true }),
  [EXT.projects]: request(projectsParams),
  [EXT.rename]: request(renameParams, { repeatable: true }),
  [EXT.fork]: request(forkParams, { guests: GUEST_ERRORS.chats }),
  [EXT.exportPrompt]: request(exportPromptParams),
  [EXT.rules]: request(rulesParams, { repeatable: ['list', 'asked', 'preview'], claims: true }),
  [EXT.secrets]: request(secretsParams, { repeatable: ['list'], claims: true }),
  [EXT.instructions]: request(instructionsParams, { repeatable: true, claims: true }),
  [EXT.mcpSignIn]: request(mcpSignInParams, { claims: true }),
  [EXT.mcpServers]: request(mcpServersParams, {
    repeatable: ['list'],
    claims: true,
    guests: GUEST_ERRORS.servers,
  }),
  [EXT.budgets]: request(budgetsParams, { repeatable: true }),

  [EXT.files]: request(filesParams, { ...files, repeatable: ['list', 'read', 'search'] }),
  [EXT.watch]: request(watchParams, { ...files, serviceOnly: true }),
  [EXT.ports]: request(portsParams, { ...sandbox, repeatable: ['list', 'connect'] }),
  [EXT.terminals]: request(terminalsParams, { ...sandbox, repeatable: ['list', 'attach'] }),
  [EXT.sandbox]: request(sandboxParams, { ...sandbox, repeatable: ['view', 'jobs', 'output'] }),
  [EXT.exec]: request(execParams, sandbox),

  [EXT.putPerson]: request(putPersonParams, { repeatable: true, addressee: 'subject', serviceOnly: true }),
  [EXT.removePerson]: request(removePersonParams, { addressee: 'subject', claims: true, serviceOnly: true }),
  [EXT.teamSeeds]: request(teamSeedsParams, { serviceOnly: true }),
  [EXT.settings]: request(settingsParams, { repeatable: ['list', 'get', 'effective', 'own'] }),
  [EXT.models]: request(modelsParams, { role: 'admin', repeatable: ['list'] }),
  [EXT.retention]: request(retentionParams, { role: 'admin', repeatable: ['get', 'preview'] }),
  [EXT.overview]: request(overviewParams, { role: 'admin', repeatable: ['view'] }),
  [EXT.toolStats]: request(toolStatsParams, { role: 'admin', repeatable: true }),
  [EXT.sandboxes]: request(sandboxesParams, {
    role: 'admin',
    repeatable: ['list', 'use'],
    addressee: 'subject',
  }),
  [EXT.deploymentRules]: request(deploymentRulesParams, { role: 'admin', repeatable: ['list'] }),
  [EXT.configuration]: request(configurationParams, { role: 'admin', repeatable: true }),
  [EXT.metrics]: request(z.unknown(), { repeatable: true }),
  [EXT.status]: request(z.unknown(), { repeatable: true }),
} satisfies Record<(typeof EXT)[Exclude<keyof typeof EXT, Notification>], AgentRequest>

type AgentRequests = typeof AGENT_REQUESTS
export type AgentMethod = keyof AgentRequests
/** The params of a request as its handler takes them. */
export type AgentParams<M extends AgentMethod> = z.output<AgentRequests[M]['params']>
/** Undefined: the method has no `ask`. */
export type AgentAct<M extends AgentMethod> = ActOf<AgentParams<M>>

const BY_METHOD = new Map<string, AgentRequest>(Object.entries(AGENT_REQUESTS))

/** Undefined for a method of ACP itself. */
export function agentRequest(method: string): AgentRequest | undefined {
  return BY_METHOD.get(method)
}
