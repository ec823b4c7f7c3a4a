/** The dependencies of the ACP server. */
import type { SandboxLimits } from '@sandlot/sandbox/backend'
import type { listWorkspaces } from '@sandlot/sandbox/controller/workspaces'
import type { Sandboxes } from '@sandlot/sandbox/sandboxes'
import type { PersonJobs } from '../tools/background/person-jobs.ts'
import type { Starting } from './starting.ts'
import type { SettingRow } from '@sandlot/shared/admin/configuration'
import type { ToolStatsView } from '@sandlot/shared/admin/tool-stats'
import type { RuleRegistry } from '../approval/rule-registry.ts'
import type { SandboxFiles } from '@sandlot/sandbox/files'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { AgentMetricsAnswer, AgentStatus } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import type { RemovedData } from '@sandlot/shared/account/api'
import type { AgentOverview } from '@sandlot/shared/admin/overview'
import type { Finding } from '@sandlot/shared/base/finding'
import type { Mode } from '@sandlot/shared/chat/mode'
import type { Budget } from '@sandlot/shared/admin/usage'
import type { Rule } from '@sandlot/shared/chat/rules'
import type { AuditLog } from '@sandlot/storage/audit/audit'
import type { ChatRows } from '@sandlot/storage/shares/chats'
import type { InstructionRows } from '@sandlot/storage/people/instructions'
import type { ModelRegistry } from '../model/model-registry.ts'
import type { SettingsRegistry } from '../people/settings-registry.ts'
import type { ServerAdmin } from '../mcp/server-admin.ts'
import type { SignInResult } from '../mcp/oauth/sign-ins.ts'
import type { UserSecrets } from '../people/user-secrets.ts'
import type { Retention } from '../session/retention.ts'
import type { SessionManager } from '../session/manager.ts'
import type { DeploymentInstructions } from '../config/instructions.ts'
import type { Ownership } from '../replicas/ownership.ts'
import type { PersonTool } from '@sandlot/shared/account/agent-settings'
import type { Log } from '../log.ts'
import type { Execs } from '../workspace/exec.ts'
import type { Terminals } from '../workspace/terminals.ts'
import type { FileWatches } from './file-watches.ts'
import type { ByteStreams } from './byte-streams.ts'
import type { ClientServers } from './editor/client-servers.ts'

export interface SandboxAdmin {
  sandboxes: Pick<Sandboxes, 'status' | 'reset' | 'stop'> & {
    /** Every workspace there is. */
    workspaces: () => ReturnType<typeof listWorkspaces>
    /** The name of what sandboxes are made from now. Never rejects. */
    imageName: () => Promise<string>
  }
  starting: Starting
  jobs: PersonJobs
  limits: SandboxLimits
}

export interface Administration {
  toolStats: () => ToolStatsView
  rules: RuleRegistry
  /** The current settings, with their sources. */
  settings: () => Promise<readonly SettingRow[]>
}

/** Parts of the protocol itself: connections, sessions, prompts. */
export interface ProtocolParts {
  manager: SessionManager
  /** Ownership of the users whose requests are answered here. */
  ownership: Ownership
  /** The mode of a new session whose request names none. */
  defaultMode: Mode
  /** True if any of the configured models has image input. */
  takesImages: boolean
  /** Called with the user of each request. */
  userSeen: (user: AgentUser) => void
  /**
   * The highest mode that an administrator lets this user have, where the configuration says so.
   */
  modeCeilingOf: (userId: string, said: Mode | undefined) => Mode | undefined
  /** The MCP servers of clients. */
  clientServers: Pick<ClientServers, 'leave' | 'setServers' | 'states'>
  status(): Promise<AgentStatus>
  version: string
  log: Log
}

/** Data and limits of people. */
export interface PersonParts {
  secrets: UserSecrets
  instructions: InstructionRows
  /** The instructions of the configuration, for all users. */
  configuredInstructions: DeploymentInstructions | undefined
  projects: Pick<ChatRows, 'putProject' | 'removeProject' | 'projects'>
  mcpServers: ServerAdmin
  /** Completes a person's sign-in at an MCP server. */
  finishSignIn: (userId: string, answer: URLSearchParams) => Promise<SignInResult>
  /** This user's limits in a day and a month. */
  budgetsOf: (userId: string) => Promise<Budget[]>
  /** Removes a person (`people/removal.ts`). */
  removePerson: (userId: string, data: RemovedData, handOver?: string) => Promise<void>
}

/** Sandboxes as people use them without the agent. */
export interface WorkspaceParts {
  /** The files of this person, whose sandbox is started for it. */
  workspace: (userId: string) => Promise<SandboxFiles>
  /** The rules that hold for this person. */
  rulesOf: (userId: string) => Promise<readonly Rule[]>
  /** Watches of the parts of workspaces that pages show. */
  watches: FileWatches
  shell: ShellParts
}

/** Tools that people use themselves in their sandboxes. */
export interface ShellParts {
  terminals: Terminals
  execs: Execs
  sandboxAdmin: SandboxAdmin
  streams: ByteStreams
  /** The user's sandbox if it is awake; it is not started for it. */
  connected: (userId: string) => Promise<Sandbox | undefined>
  /** True if an administrator lets this user have it. */
  mayUse: (userId: string, what: PersonTool) => boolean
}

/** The whole deployment, for administrators. */
export interface AdminParts {
  audit: Pick<AuditLog, 'write'>
  retention: Pick<Retention, 'answer'>
  administration: Administration
  models: ModelRegistry
  /** Settings for teams and people. */
  settings: SettingsRegistry
  /** The metrics since the start. */
  metrics: () => Promise<AgentMetricsAnswer>
  /** The administrators' view other than prompts. */
  overview: () => Promise<Omit<AgentOverview, 'prompts'>>
  /** The agent’s part of what `./sandlot doctor` says. */
  checks: () => Promise<Finding[]>
}

/** All of them, built once; each group of requests takes its own. */
export type AcpServerParts = ProtocolParts & PersonParts & WorkspaceParts & AdminParts
