/**
 * The arrows between the folders and root files of each package, from the ground up: a place, the places below it that it
 * may name, and behind ↑ those above it that it still names. That part may only shrink.
 */
import { readTables } from './arrows.ts'

export const TABLES = readTables(`
packages/shared/src/
  errors.ts:
  ids.ts:
  finding.ts:
  format-bytes.ts:
  quoted-path.ts:
  scrub.ts:
  exact-numbers.ts:
  readable.ts:
  storable-text.ts:
  async:
  mcp-client.ts:
  config:
  images.ts:
  mode.ts:
  model-choice.ts:
  question.ts:
  reasons.ts:
  rules.ts:
  call.ts: images.ts
  office: finding.ts rules.ts ↑ api.ts acp-meta.ts desk
  config.ts: config office
  team: errors.ts ids.ts mode.ts office ↑ events.ts
  sandlot-event.ts: images.ts mode.ts question.ts reasons.ts rules.ts call.ts office team ↑ desk
  event-meta.ts: reasons.ts call.ts team sandlot-event.ts
  events.ts: mode.ts call.ts sandlot-event.ts event-meta.ts
  pending-approvals.ts: question.ts rules.ts call.ts sandlot-event.ts events.ts
  frames.ts: errors.ts ids.ts readable.ts images.ts mode.ts model-choice.ts question.ts reasons.ts team
    sandlot-event.ts events.ts
  api.ts: errors.ts ids.ts config images.ts mode.ts model-choice.ts question.ts reasons.ts team
    sandlot-event.ts event-meta.ts frames.ts
  acp-meta.ts: errors.ts ids.ts mode.ts model-choice.ts question.ts office team sandlot-event.ts frames.ts
    api.ts
  person: storable-text.ts images.ts rules.ts acp-meta.ts
  desk: errors.ts ids.ts storable-text.ts mode.ts model-choice.ts team pending-approvals.ts api.ts
    acp-meta.ts person
  transcript: exact-numbers.ts images.ts mode.ts question.ts reasons.ts rules.ts call.ts office team
    sandlot-event.ts event-meta.ts events.ts desk
  node: errors.ts ids.ts finding.ts format-bytes.ts async config office config.ts team

packages/storage/src/
  storage-error.ts:
  plain-words.ts: storage-error.ts
  lock.ts: storage-error.ts ↑ database
  free-bytes.ts: ↑ database
  database: storage-error.ts lock.ts free-bytes.ts
  audit: storage-error.ts database
  office: audit ↑ sessions
  search: storage-error.ts database ↑ sessions
  retention: database audit ↑ sessions
  sessions: storage-error.ts database audit office search retention
  accounts: plain-words.ts lock.ts database audit
  migrate: storage-error.ts database search sessions accounts

packages/sandbox/src/
  .:
  egress: .
  sbxd: . egress
  backends: . sbxd
  controller: . egress sbxd
  doctor: . backends controller

packages/ai-agent/src/
  log.ts:
  people: log.ts
  terminals: log.ts
  watchdog: log.ts
  line: log.ts
  replicas: log.ts
  workspace:
  model:
  approval:
  tools: log.ts model approval
  secrets: tools
  history: model tools
  limits: people history
  replay: model history limits
  metrics: model
  calls: log.ts model approval tools secrets history metrics
  exec: log.ts approval tools history calls
  compaction: model history
  loop: log.ts line model tools history limits calls compaction
  mcp: log.ts model tools secrets
  config: log.ts people model approval tools limits mcp
  changes: log.ts approval tools
  session: log.ts watchdog line replicas model approval tools secrets history limits replay metrics calls
    loop config changes
  plain: log.ts model approval tools history limits metrics calls loop mcp session
  acp: log.ts people terminals replicas workspace model approval tools secrets replay exec loop mcp config
    session
  config.ts: people model tools limits mcp config
  sandbox-backend.ts: log.ts secrets config.ts
  admin: replicas tools secrets config config.ts sandbox-backend.ts
  agent: log.ts people terminals watchdog line replicas model approval tools secrets limits metrics exec
    loop mcp config session acp config.ts sandbox-backend.ts
  agent.ts: log.ts watchdog line replicas tools metrics calls loop config session acp config.ts agent
  main.ts: log.ts watchdog replicas tools acp config.ts agent.ts

packages/service/src/
  log.ts:
  metrics.ts:
  auth:
  notices: log.ts
  config.ts: auth notices
  check-audit.ts: config.ts
  agent: log.ts ↑ socket
  chat: log.ts agent ↑ socket
  socket: log.ts metrics.ts auth config.ts agent chat ↑ http
  fellows: log.ts socket
  office: log.ts config.ts chat
  people: log.ts auth agent chat socket
  removals.ts: log.ts agent chat socket
  people-admin.ts: auth config.ts agent socket fellows
  sign-in: log.ts auth socket
  own-data: chat ↑ http
  previews: log.ts auth config.ts agent socket ↑ http
  http: log.ts metrics.ts auth notices config.ts agent chat socket fellows office people removals.ts sign-in
    own-data previews
  server.ts: log.ts metrics.ts auth notices config.ts agent chat socket fellows office people removals.ts
    sign-in previews http
  main.ts: config.ts http server.ts

packages/web/src/
  styles:
  lib:
  ui: lib
  net:
  state: lib net
  auth: lib ui net
  terminal: lib ui net ↑ chat settings
  markdown: lib ui net ↑ desk chat
  diff: net ↑ desk
  preview: lib ui net terminal markdown diff ↑ desk chat
  sandbox: lib ui net ↑ settings
  search: lib ui net ↑ chat sidebar
  files: lib ui net state preview ↑ desk chat settings
  changes: lib ui net state diff ↑ desk chat
  app-preview: ui net
  desk: lib ui terminal sandbox files changes app-preview
  chat: lib ui net state auth terminal markdown diff preview files changes desk ↑ sidebar settings
  sidebar: lib ui net state auth search chat
  settings: lib ui net auth sandbox chat
  palette: lib ui net state search desk chat sidebar settings
  layout.tsx: lib ui net state desk chat sidebar settings palette
  signed-in.tsx: lib ui net state chat settings layout.tsx
  app.tsx: ui net auth signed-in.tsx
  main.tsx: styles lib ui app.tsx

packages/cli/src/
  steps.ts:
  config.ts: ↑ processes
  deployment: steps.ts config.ts
  context.ts: steps.ts config.ts
  processes: steps.ts config.ts deployment context.ts
  programs: steps.ts context.ts processes
  exit-code.ts: steps.ts processes
  systemd: steps.ts config.ts deployment context.ts processes programs
  testing: steps.ts config.ts programs
  setup: steps.ts config.ts processes programs
  checks: steps.ts config.ts deployment processes programs
  upgrade: steps.ts config.ts deployment context.ts processes programs ↑ commands
  commands: steps.ts config.ts deployment context.ts processes programs systemd testing setup checks upgrade
  commands.ts: context.ts commands
  supervisor: steps.ts config.ts deployment context.ts processes programs exit-code.ts setup
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
