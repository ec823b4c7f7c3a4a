/**
 * The arrows between the folders and root files of each package, from the ground up: a place, the places below it that it
 * may name, and behind ↑ those above it that it still names. That part may only shrink.
 */
import { readTables } from './arrows.ts'

export const TABLES = readTables(`
packages/shared/src/
  base:
  config:
  async:
  chat: base
  account: base config chat
  search: base chat
  acp: base chat account
  workspace: base chat account
  admin: base chat account workspace
  agent-requests.ts: base account acp workspace admin
  actions.ts: base chat account search workspace admin agent-requests.ts
  config.ts: config admin
  node: base config async account admin config.ts
  transcript: base chat

packages/storage/src/
  storage-error.ts:
  plain-words.ts: storage-error.ts
  tables: storage-error.ts
  database: storage-error.ts
  audit: storage-error.ts database
  usage: tables
  shares: audit tables
  search: storage-error.ts database tables shares
  retention: usage database audit tables search
  people: database audit tables retention
  replicas: storage-error.ts database tables
  sessions: usage storage-error.ts database audit tables shares search retention people replicas
  accounts: database audit tables plain-words.ts
  store: usage storage-error.ts database audit tables shares search retention people replicas sessions
  migrate: storage-error.ts database tables search accounts store

packages/sandbox/src/
  .:
  egress: .
  sbxd: . egress
  backends: . sbxd
  controller: . egress sbxd
  doctor: . backends controller

packages/ai-agent/src/
  log.ts:
  model:
  approval:
  tools: log.ts model approval
  people: log.ts tools
  history: model tools
  limits: log.ts people history
  mcp: log.ts model tools people
  replicas: log.ts
  config: log.ts model approval tools people limits mcp
  metrics: model
  calls: log.ts model approval tools people history metrics
  loop: log.ts model tools history limits calls
  workspace: log.ts approval tools history calls
  session: log.ts model approval tools people history limits replicas config metrics calls loop workspace
  acp: log.ts model approval tools people mcp replicas config loop workspace session
  agent: log.ts model approval tools people limits mcp replicas config metrics calls loop workspace session
    acp
  main.ts: log.ts tools replicas config acp agent
  plain: log.ts model approval tools history limits mcp metrics calls loop session

packages/service/src/
  log.ts:
  auth:
  agent: log.ts
  chat: log.ts agent
  notifications: log.ts
  config.ts: auth notifications
  metrics.ts:
  operations: log.ts chat config.ts
  own-data: chat
  socket: log.ts auth agent chat config.ts metrics.ts ↑ http
  peers: log.ts socket
  people: log.ts auth agent chat config.ts socket peers
  sign-in: log.ts auth socket
  previews: log.ts auth agent config.ts socket
  http: log.ts auth agent chat notifications config.ts metrics.ts operations own-data socket peers people
    sign-in previews
  search: auth socket http
  handlers.ts: http search
  server.ts: log.ts auth agent chat notifications config.ts metrics.ts operations socket peers people sign-in
    previews http handlers.ts
  main.ts: config.ts http server.ts

packages/web/src/
  styles:
  lib:
  ui: lib
  net:
  state: lib ui net
  auth: lib ui net
  terminal: net
  changes: lib ui state
  markdown: lib ui net state
  preview: lib ui net state terminal markdown
  chat: lib ui net state auth terminal changes markdown preview
  search: lib ui net state chat
  workspace: lib ui net state terminal changes preview
  settings: lib ui net state auth chat
  sidebar: lib ui net state auth chat search
  app: lib ui net state auth chat search workspace settings sidebar
  main.tsx: styles lib ui app
  vite-env.d.ts:

packages/cli/src/
  steps.ts:
  config.ts:  ↑ processes
  context.ts: steps.ts config.ts
  deployment: steps.ts config.ts
  processes: steps.ts config.ts context.ts deployment
  programs: steps.ts context.ts processes
  upgrade: steps.ts config.ts context.ts deployment processes programs ↑ commands
  setup: steps.ts config.ts processes programs
  exit-code.ts: steps.ts processes
  checks: steps.ts config.ts deployment processes programs
  systemd: steps.ts config.ts context.ts deployment processes programs
  testing: steps.ts config.ts programs
  bundle: steps.ts context.ts programs
  supervisor: steps.ts config.ts context.ts deployment processes programs setup exit-code.ts
  commands: steps.ts config.ts context.ts deployment processes programs upgrade setup checks systemd testing bundle
  commands.ts: context.ts commands
  main.ts: steps.ts config.ts exit-code.ts commands.ts

packages/backup/src/
  .:

packages/engine-gate/src/
  .:

mcp/flights-mcp/src/
  .:

mcp/google-calendar-mcp/src/
  .:

mcp/mcp-kit/src/
  .:
`)
