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
import { type Action, acts, adminChat, adminCookie, adminRead, read, rowsFor } from '../base/action.ts'
import { GUEST_ERRORS } from '../base/guest-errors.ts'
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

const models = acts('models')
const retention = acts('retention')
const sandboxes = acts('sandboxes')
const rules = acts('deployment_rules')
const ownServers = acts('mcp_servers', 'own')
const servers = acts('mcp_servers', 'deployment')
const readOwn = rowsFor({ scope: 'read', guests: GUEST_ERRORS.servers })
const changeOwn = rowsFor({ scope: 'cookie', guests: GUEST_ERRORS.servers })

export const adminActions = {
  getUsage: read('GET /api/usage', { response: usageView, guests: GUEST_ERRORS.usage }),
  listBudgets: read('GET /api/usage/budgets', { response: budgetList, guests: GUEST_ERRORS.usage }),
  listServers: readOwn('GET /api/mcp-servers', { response: serversView, agent: ownServers('list') }),
  addServer: changeOwn('POST /api/mcp-servers', {
    request: serverRequest,
    response: serversView,
    status: 201,
    agent: ownServers('put'),
  }),
  changeServer: changeOwn('PUT /api/mcp-servers/:id', {
    request: serverRequest,
    response: serversView,
    agent: ownServers('put'),
  }),
  removeServer: changeOwn('DELETE /api/mcp-servers/:id', {
    response: serversView,
    agent: ownServers('remove'),
  }),
  testServer: changeOwn('POST /api/mcp-servers/:id/test', {
    response: serverStatus,
    agent: ownServers('test'),
  }),
  signOutOfServer: changeOwn('POST /api/mcp-servers/:id/sign-out', {
    response: serversView,
    agent: ownServers('sign_out'),
  }),
  signInToServer: changeOwn('POST /api/mcp-servers/:id/sign-in', { response: serverSignIn }),

  listEverybodysServers: adminRead('GET /api/admin/mcp-servers', {
    response: serversView,
    agent: servers('list'),
  }),
  addEverybodysServer: adminChat('POST /api/admin/mcp-servers', {
    request: serverRequest,
    response: serversView,
    status: 201,
    agent: servers('put'),
  }),
  changeEverybodysServer: adminChat('PUT /api/admin/mcp-servers/:id', {
    request: serverRequest,
    response: serversView,
    agent: servers('put'),
  }),
  removeEverybodysServer: adminChat('DELETE /api/admin/mcp-servers/:id', {
    response: serversView,
    agent: servers('remove'),
  }),
  testEverybodysServer: adminChat('POST /api/admin/mcp-servers/:id/test', {
    response: serverStatus,
    agent: servers('test'),
  }),
  signOutOfEverybodysServer: adminCookie('POST /api/admin/mcp-servers/:id/sign-out', {
    response: serversView,
    agent: servers('sign_out'),
  }),
  signInToEverybodysServer: adminCookie('POST /api/admin/mcp-servers/:id/sign-in', {
    response: serverSignIn,
  }),

  listUsers: adminRead('GET /api/users', { response: userList }),
  addUser: adminChat('POST /api/users', { request: newUserRequest, response: account, status: 201 }),
  changeUser: adminChat('PATCH /api/users/:id', { request: changePersonRequest, response: account }),
  removeUser: adminChat('DELETE /api/users/:id', { response: removal, status: 202 }),
  resetUserPassword: adminChat('POST /api/users/:id/password', { response: newPassword }),
  removeSecondFactor: adminChat('DELETE /api/users/:id/second-factor'),
  getUserSettings: adminRead('GET /api/users/:id/settings', { response: settingsAnswer }),
  putUserSettings: adminChat('PUT /api/users/:id/settings', {
    request: putSettingsRequest,
    response: settingsView,
  }),
  getUserEffective: adminRead('GET /api/users/:id/effective', { response: effectiveSettingsView }),
  listTeams: adminRead('GET /api/teams', { response: teamList }),
  addTeam: adminChat('POST /api/teams', { request: newTeamRequest, response: team, status: 201 }),
  renameTeam: adminChat('PATCH /api/teams/:id', { request: renameTeamRequest, response: team }),
  removeTeam: adminChat('DELETE /api/teams/:id'),
  setTeamMember: adminChat('PUT /api/teams/:id/members/:userId', {
    request: teamMemberRequest,
    response: team,
  }),
  getTeamSettings: adminRead('GET /api/teams/:id/settings', { response: settingsAnswer }),
  putTeamSettings: adminChat('PUT /api/teams/:id/settings', {
    request: putSettingsRequest,
    response: settingsView,
  }),
  listInvitations: adminRead('GET /api/invitations', { response: invitationList }),
  makeInvitation: adminChat('POST /api/invitations', {
    request: newInvitationRequest,
    response: newInvitation,
    status: 201,
  }),
  revokeInvitation: adminChat('DELETE /api/invitations/:id'),

  listModels: adminRead('GET /api/models', { response: modelsView, agent: models('list') }),
  addEndpoint: adminChat('POST /api/models', {
    request: endpointRequest,
    response: modelsView,
    status: 201,
    agent: models('put'),
  }),
  changeEndpoint: adminChat('PUT /api/models/:id', {
    request: endpointRequest,
    response: modelsView,
    agent: models('put'),
  }),
  removeEndpoint: adminChat('DELETE /api/models/:id', { response: modelsView, agent: models('remove') }),
  testEndpoint: adminChat('POST /api/models/test', {
    request: endpointTestRequest,
    response: endpointTestResult,
    agent: models('test'),
  }),

  listAlerts: adminRead('GET /api/admin/alerts', { response: alertsView }),
  testAlerts: adminChat('POST /api/admin/alerts/test', { response: alertTest }),
  listAudit: adminRead('GET /api/admin/audit', { response: auditPage }),
  exportAudit: adminRead('GET /api/admin/audit/export', { response: 'bytes' }),
  checkAudit: adminRead('GET /api/admin/audit/chains', { response: auditChains }),
  getBackups: adminRead('GET /api/admin/backups', { response: backupsView }),
  getRetention: adminRead('GET /api/admin/retention', { response: retentionView, agent: retention('get') }),
  putRetention: adminChat('PUT /api/admin/retention', {
    request: putRetention,
    response: retentionView,
    agent: retention('put'),
  }),
  previewRetention: adminChat('POST /api/admin/retention/preview', {
    request: previewRetention,
    response: retentionPreview,
  }),
  getOverview: adminRead('GET /api/admin/overview', { response: overview }),
  getChecks: adminRead('GET /api/admin/overview/checks', { response: checksView }),
  runChecks: adminChat('POST /api/admin/overview/checks', { response: checksView }),
  stopPrompt: adminChat('POST /api/admin/overview/prompts/:id/stop', { response: overview }),
  listTools: adminRead('GET /api/admin/tools', { response: toolStatsView }),
  listSandboxes: adminRead('GET /api/admin/sandboxes', { response: sandboxesView }),
  measureSandboxes: adminRead('GET /api/admin/sandboxes/use', { response: sandboxUses }),
  stopUserSandbox: adminChat('POST /api/admin/sandboxes/:userId/stop', { agent: sandboxes('stop') }),
  resetUserSandbox: adminChat('POST /api/admin/sandboxes/:userId/reset', { agent: sandboxes('reset') }),
  listEverybodysRules: adminRead('GET /api/admin/rules', { response: deploymentRules, agent: rules('list') }),
  addEverybodysRule: adminCookie('POST /api/admin/rules', {
    request: newDeploymentRule,
    response: rule,
    status: 201,
    agent: rules('add', 'rule'),
  }),
  revokeEverybodysRule: adminCookie('DELETE /api/admin/rules/:id', { agent: rules('revoke') }),
  getConfiguration: adminRead('GET /api/admin/configuration', { response: configurationView }),
  getUsageOfAll: adminRead('GET /api/admin/usage', { response: adminUsageView }),
} satisfies Record<string, Action>
