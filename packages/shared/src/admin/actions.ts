/** Actions of administrators, and what people see of the same: usage and MCP servers. */
import { account, newUserRequest, removal, userList } from '../account/api.ts'
import {
  effectiveSettingsView,
  putSettingsRequest,
  settingsAnswer,
  settingsView,
} from '../account/agent-settings.ts'
import {
  endpointRequest,
  endpointTestRequest,
  endpointTestResult,
  modelsView,
} from '../account/models-api.ts'
import { invitationList, newInvitation, newInvitationRequest, newPassword } from '../account/sign-in-api.ts'
import {
  changePersonRequest,
  newTeamRequest,
  renameTeamRequest,
  team,
  teamList,
  teamMemberRequest,
} from '../account/teams-api.ts'
import { ask, type Action } from '../base/action.ts'
import { rule } from '../chat/rules.ts'
import { alertsView, alertTest } from './alerts.ts'
import { auditChains, auditPage } from './audit.ts'
import { backupsView } from './backup-status.ts'
import { checksView } from './checks.ts'
import { configurationView } from './configuration.ts'
import { deploymentRules, newDeploymentRule } from './deployment-rules.ts'
import { serverRequest, serverSignIn, serverStatus, serversView } from './mcp-servers.ts'
import { overview } from './overview.ts'
import { previewRetention, putRetention, retentionPreview, retentionView } from './retention.ts'
import { sandboxesView, sandboxUses } from './sandboxes.ts'
import { toolStatsView } from './tool-stats.ts'
import { adminUsageView, budgetList, usageView } from './usage.ts'

/** Reads and changes of administrators. */
const read = { scope: 'read', role: 'admin' } as const
const change = { scope: 'chat', role: 'admin' } as const
/** Changes that must not outlive a leaked key. */
const signedIn = { scope: 'cookie', role: 'admin' } as const

const own = { of: 'own' } as const
const deployment = { of: 'deployment' } as const

export const adminActions = {
  getUsage: { route: 'GET /api/usage', scope: 'read', response: usageView },
  listBudgets: { route: 'GET /api/usage/budgets', scope: 'read', response: budgetList },
  listServers: {
    route: 'GET /api/mcp-servers',
    scope: 'read',
    response: serversView,
    agent: ask('mcp_servers', 'list', own),
  },
  addServer: {
    route: 'POST /api/mcp-servers',
    scope: 'cookie',
    request: serverRequest,
    response: serversView,
    status: 201,
    agent: ask('mcp_servers', 'put', own),
  },
  changeServer: {
    route: 'PUT /api/mcp-servers/:id',
    scope: 'cookie',
    request: serverRequest,
    response: serversView,
    agent: ask('mcp_servers', 'put', own),
  },
  removeServer: {
    route: 'DELETE /api/mcp-servers/:id',
    scope: 'cookie',
    response: serversView,
    agent: ask('mcp_servers', 'remove', own),
  },
  testServer: {
    route: 'POST /api/mcp-servers/:id/test',
    scope: 'cookie',
    response: serverStatus,
    agent: ask('mcp_servers', 'test', own),
  },
  signOutOfServer: {
    route: 'POST /api/mcp-servers/:id/sign-out',
    scope: 'cookie',
    response: serversView,
    agent: ask('mcp_servers', 'sign_out', own),
  },
  signInToServer: { route: 'POST /api/mcp-servers/:id/sign-in', scope: 'cookie', response: serverSignIn },

  listEverybodysServers: {
    route: 'GET /api/admin/mcp-servers',
    ...read,
    response: serversView,
    agent: ask('mcp_servers', 'list', deployment),
  },
  addEverybodysServer: {
    route: 'POST /api/admin/mcp-servers',
    ...change,
    request: serverRequest,
    response: serversView,
    status: 201,
    agent: ask('mcp_servers', 'put', deployment),
  },
  changeEverybodysServer: {
    route: 'PUT /api/admin/mcp-servers/:id',
    ...change,
    request: serverRequest,
    response: serversView,
    agent: ask('mcp_servers', 'put', deployment),
  },
  removeEverybodysServer: {
    route: 'DELETE /api/admin/mcp-servers/:id',
    ...change,
    response: serversView,
    agent: ask('mcp_servers', 'remove', deployment),
  },
  testEverybodysServer: {
    route: 'POST /api/admin/mcp-servers/:id/test',
    ...change,
    response: serverStatus,
    agent: ask('mcp_servers', 'test', deployment),
  },
  signOutOfEverybodysServer: {
    route: 'POST /api/admin/mcp-servers/:id/sign-out',
    ...signedIn,
    response: serversView,
    agent: ask('mcp_servers', 'sign_out', deployment),
  },
  signInToEverybodysServer: {
    route: 'POST /api/admin/mcp-servers/:id/sign-in',
    ...signedIn,
    response: serverSignIn,
  },

  listUsers: { route: 'GET /api/users', ...read, response: userList },
  addUser: { route: 'POST /api/users', ...change, request: newUserRequest, response: account, status: 201 },
  changeUser: { route: 'PATCH /api/users/:id', ...change, request: changePersonRequest, response: account },
  removeUser: { route: 'DELETE /api/users/:id', ...change, response: removal, status: 202 },
  resetUserPassword: { route: 'POST /api/users/:id/password', ...change, response: newPassword },
  removeSecondFactor: { route: 'DELETE /api/users/:id/second-factor', ...change },
  getUserSettings: { route: 'GET /api/users/:id/settings', ...read, response: settingsAnswer },
  putUserSettings: {
    route: 'PUT /api/users/:id/settings',
    ...change,
    request: putSettingsRequest,
    response: settingsView,
  },
  getUserEffective: { route: 'GET /api/users/:id/effective', ...read, response: effectiveSettingsView },
  listTeams: { route: 'GET /api/teams', ...read, response: teamList },
  addTeam: { route: 'POST /api/teams', ...change, request: newTeamRequest, response: team, status: 201 },
  renameTeam: { route: 'PATCH /api/teams/:id', ...change, request: renameTeamRequest, response: team },
  removeTeam: { route: 'DELETE /api/teams/:id', ...change },
  setTeamMember: {
    route: 'PUT /api/teams/:id/members/:userId',
    ...change,
    request: teamMemberRequest,
    response: team,
  },
  getTeamSettings: { route: 'GET /api/teams/:id/settings', ...read, response: settingsAnswer },
  putTeamSettings: {
    route: 'PUT /api/teams/:id/settings',
    ...change,
    request: putSettingsRequest,
    response: settingsView,
  },
  listInvitations: { route: 'GET /api/invitations', ...read, response: invitationList },
  makeInvitation: {
    route: 'POST /api/invitations',
    ...change,
    request: newInvitationRequest,
    response: newInvitation,
    status: 201,
  },
  revokeInvitation: { route: 'DELETE /api/invitations/:id', ...change },

  listModels: { route: 'GET /api/models', ...read, response: modelsView, agent: ask('models', 'list') },
  addEndpoint: {
    route: 'POST /api/models',
    ...change,
    request: endpointRequest,
    response: modelsView,
    status: 201,
    agent: ask('models', 'put'),
  },
  changeEndpoint: {
    route: 'PUT /api/models/:id',
    ...change,
    request: endpointRequest,
    response: modelsView,
    agent: ask('models', 'put'),
  },
  removeEndpoint: {
    route: 'DELETE /api/models/:id',
    ...change,
    response: modelsView,
    agent: ask('models', 'remove'),
  },
  testEndpoint: {
    route: 'POST /api/models/test',
    ...change,
    request: endpointTestRequest,
    response: endpointTestResult,
    agent: ask('models', 'test'),
  },

  listAlerts: { route: 'GET /api/admin/alerts', ...read, response: alertsView },
  testAlerts: { route: 'POST /api/admin/alerts/test', ...change, response: alertTest },
  listAudit: { route: 'GET /api/admin/audit', ...read, response: auditPage },
  exportAudit: { route: 'GET /api/admin/audit/export', ...read, response: 'bytes' },
  checkAudit: { route: 'GET /api/admin/audit/chains', ...read, response: auditChains },
  getBackups: { route: 'GET /api/admin/backups', ...read, response: backupsView },
  getRetention: {
    route: 'GET /api/admin/retention',
    ...read,
    response: retentionView,
    agent: ask('retention', 'get'),
  },
  putRetention: {
    route: 'PUT /api/admin/retention',
    ...change,
    request: putRetention,
    response: retentionView,
    agent: ask('retention', 'put'),
  },
  previewRetention: {
    route: 'POST /api/admin/retention/preview',
    ...change,
    request: previewRetention,
    response: retentionPreview,
  },
  getOverview: { route: 'GET /api/admin/overview', ...read, response: overview },
  getChecks: { route: 'GET /api/admin/overview/checks', ...read, response: checksView },
  runChecks: { route: 'POST /api/admin/overview/checks', ...change, response: checksView },
  stopPrompt: { route: 'POST /api/admin/overview/prompts/:id/stop', ...change, response: overview },
  listTools: { route: 'GET /api/admin/tools', ...read, response: toolStatsView },
  listSandboxes: { route: 'GET /api/admin/sandboxes', ...read, response: sandboxesView },
  measureSandboxes: { route: 'GET /api/admin/sandboxes/use', ...read, response: sandboxUses },
  stopUserSandbox: {
    route: 'POST /api/admin/sandboxes/:userId/stop',
    ...change,
    agent: ask('sandboxes', 'stop'),
  },
  resetUserSandbox: {
    route: 'POST /api/admin/sandboxes/:userId/reset',
    ...change,
    agent: ask('sandboxes', 'reset'),
  },
  listEverybodysRules: {
    route: 'GET /api/admin/rules',
    ...read,
    response: deploymentRules,
    agent: ask('deployment_rules', 'list'),
  },
  addEverybodysRule: {
    route: 'POST /api/admin/rules',
    ...signedIn,
    request: newDeploymentRule,
    response: rule,
    status: 201,
    agent: ask('deployment_rules', 'add', { body: 'rule' }),
  },
  revokeEverybodysRule: {
    route: 'DELETE /api/admin/rules/:id',
    ...signedIn,
    agent: ask('deployment_rules', 'revoke'),
  },
  getConfiguration: { route: 'GET /api/admin/configuration', ...read, response: configurationView },
  getUsageOfAll: { route: 'GET /api/admin/usage', ...read, response: adminUsageView },
} as const satisfies Record<string, Action>
