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

export interface AcpServerParts {
  manager: SessionManager
  /** Ownership of the users whose requests are answered here. Absent: everybody's are. */
  ownership?: Ownership
  /** The mode of a new session whose request names none. */
  defaultMode: Mode
  /** True if any of the configured models has image input. Absent: it has none. */
  takesImages?: boolean
  /** People's secrets. Absent: the agent stores none. */
  secrets?: UserSecrets
  /** People's instructions. Absent: the agent stores none. */
  instructions?: InstructionRows
  /** People's projects. Absent: the agent stores none. */
  projects?: Pick<ChatRows, 'putProject' | 'removeProject' | 'projects'>
  /** The instructions of the configuration, for all users. */
  configuredInstructions?: DeploymentInstructions
  /** The rules that hold for this person. Absent: none do. */
  rulesOf?: (userId: string) => Promise<readonly Rule[]>
  /** The files of this person, whose sandbox is started for it. Absent: there are no sandboxes. */
  workspace?: (userId: string) => Promise<SandboxFiles>
  /** Watches of the parts of workspaces that pages show. Absent: there are no sandboxes. */
  watches?: FileWatches
  /** Tools that people use themselves in their sandboxes. Absent: there are none. */
  shell?: {
    terminals: Terminals
    execs: Execs
    sandboxAdmin: SandboxAdmin
    streams: ByteStreams
    /** The user's sandbox if it is awake; it is not started for it. */
    connected: (userId: string) => Promise<Sandbox | undefined>
    /** True if an administrator lets this user have it. */
    mayUse: (userId: string, what: PersonTool) => boolean
  }
  /** The audit log. Absent: nothing is recorded. */
  audit?: Pick<AuditLog, 'write'>
  /** Retention times. Absent: for ever. */
  retention?: Pick<Retention, 'answer'>
  /** The whole deployment, for administrators. Absent: it is not administrated from here. */
  administration?: Administration
  /** Endpoints of models. Absent: none can be added. */
  models?: ModelRegistry
  /** MCP servers on the page. Absent: none can be added. */
  mcpServers?: ServerAdmin
  /** Administrators' settings for teams and people. Absent: nothing can be set. */
  settings?: SettingsRegistry
  /** This user's limits in a day and a month. Absent: there are none. */
  budgetsOf?: (userId: string) => Promise<Budget[]>
  /** Called with the user of each request. */
  userSeen?: (user: AgentUser) => void
  /**
   * The highest mode that an administrator lets this user have, where the configuration says so.
   */
  modeCeilingOf?: (userId: string, said: Mode | undefined) => Mode | undefined
  /** Completes a person's sign-in at an MCP server. Absent: there are no such servers. */
  finishSignIn?: (userId: string, answer: URLSearchParams) => Promise<SignInResult>
  /** Removes a person (`people/removal.ts`). Absent: not supported here. */
  removePerson?: (userId: string, data: RemovedData, handOver?: string) => Promise<void>
  /** The MCP servers of clients. Absent: none are used here. */
  clientServers?: ClientServers
  /** The metrics since the start. Absent: not counted. */
  metrics?: () => Promise<AgentMetricsAnswer>
  /** The administrators' view other than prompts. Absent: not known here. */
  overview?: () => Promise<Omit<AgentOverview, 'prompts'>>
  /** The agent’s part of what `./sandlot doctor` says. Absent: it has none. */
  checks?: () => Promise<Finding[]>
  status(): Promise<AgentStatus>
  version: string
  log: Log
}
