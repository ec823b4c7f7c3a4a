/** The protocol, row by row, and the test that shows it; as in loop-rows.ts. */
const SESSIONS = 'packages/ai-agent/test/acp/conformance/sessions.test.ts'
const PROMPTS = 'packages/ai-agent/test/acp/conformance/prompts.test.ts'
const UPDATES = 'packages/ai-agent/test/acp/conformance/updates.test.ts'
const EVERYWHERE = 'packages/ai-agent/test/acp/conformance/bench.ts'
const ORDER = 'packages/ai-agent/test/acp/order.test.ts'
const FOREIGN = 'packages/ai-agent/test/acp/foreign-client.test.ts'

export const ACP_ROWS: Record<string, Record<string, readonly string[]>> = {
  methods: {
    initialize: [
      `${SESSIONS} :: initialize: an unsupported version is answered with ours, never echoed, never an error`,
    ],
    authenticate: [`${SESSIONS} :: authenticate: there is no method, so every one is refused`],
    logout: [`${SESSIONS} :: logout: not advertised, not there`],
    'session/new': [
      `${SESSIONS} :: session/new: an id, modes, config options; cwd absolute; mcpServers required`,
      `${SESSIONS} :: session/new, load, resume: additional directories are not advertised, and refused rather than dropped`,
    ],
    'session/load': [
      `${SESSIONS} :: session/load: the whole conversation again, all of it before the response`,
    ],
    'session/resume': [`${SESSIONS} :: session/resume: as load without replay, mcpServers optional`],
    'session/list': [
      `${SESSIONS} :: session/list: by folder, a folder that nobody used is empty, a cursor of ours only`,
      `${SESSIONS} :: session/list: what is more than a page comes in several, each session once`,
    ],
    'session/close': [
      `${SESSIONS} :: session/close: cancels a running prompt as session/cancel does, then frees the session`,
    ],
    'session/delete': [`${SESSIONS} :: session/delete: gone for good, an unknown id succeeds silently`],
    'session/set_mode': [`${SESSIONS} :: session/set_mode: told as current_mode_update with currentModeId`],
    'session/set_config_option': [
      `${SESSIONS} :: session/set_config_option: answers the complete list`,
      `${SESSIONS} :: session/set_config_option: no boolean option for a client that does not know them`,
    ],
    'session/prompt': [
      `${PROMPTS} :: session/prompt: pending for the whole prompt; text, resource_link and an embedded resource`,
    ],
    'session/cancel': [
      `${PROMPTS} :: session/cancel: the prompt ends cancelled, never as an error, and the session goes on`,
    ],
    'session/request_permission': [
      `${PROMPTS} :: session/request_permission: the call as it is and options by id; what is selected is done`,
    ],
    'fs and terminal': [
      `${EVERYWHERE} :: fs/* and terminal/*: never called, whatever the client could do; every message is JSON-RPC 2.0`,
    ],
    elicitation: [
      'packages/ai-agent/test/acp/elicitation.test.ts :: an editor that shows forms gets the form, and its answer is the user’s',
      'packages/ai-agent/test/acp/client-servers.test.ts :: a client that let its user open a link hears when they are back, whatever came of it; one that did not hears nothing',
    ],
    '$/cancel_request': [
      `${PROMPTS} :: $/cancel_request: a prompt is answered with a valid result`,
      `${PROMPTS} :: $/cancel_request: of a prompt that waits behind another one, which goes on`,
    ],
    _anything: [`${SESSIONS} :: _anything: an unknown request is -32601, an unknown notification is ignored`],
  },
  updates: {
    user_message_chunk: [`${UPDATES} :: user_message_chunk: not the echo of the client’s own prompt`],
    'agent_message_chunk, agent_thought_chunk': [
      `${UPDATES} :: agent_message_chunk and agent_thought_chunk: each piece once, without ours`,
    ],
    'tool_call, tool_call_update': [
      `${UPDATES} :: tool_call and tool_call_update: title, kind, status, raw input and output, absolute locations`,
    ],
    plan: [`${UPDATES} :: plan: the complete list each time`],
    available_commands_update: [
      `${UPDATES} :: available_commands_update: behind the answer to session/new; each command works, without the model`,
    ],
    'current_mode_update, config_option_update': [
      `${UPDATES} :: current_mode_update and config_option_update: both, whoever changed the mode`,
    ],
    session_info_update: [`${UPDATES} :: session_info_update: the title and the time`],
    usage_update: [
      `${UPDATES} :: usage_update: tokens in the context, and the size of the window`,
      `${UPDATES} :: usage_update: what the session has cost so far, with its currency`,
    ],
    notice: [
      `${UPDATES} :: notice: what no model has said, for a client that shows notices`,
      'packages/ai-agent/test/acp/notices.test.ts :: a fallback model is a notice while it happens, to a client that shows them; never out of the history',
    ],
    'compaction_update, compaction_summary_chunk': [
      'packages/ai-agent/test/loop/compact-command.test.ts :: an editor’s user may type it; a client that knows compactions is shown one',
    ],
    'every event is one of the schema': [
      'packages/ai-agent/test/acp/types.test.ts :: every event that we emit is a SessionUpdate of the SDK',
    ],
    'content blocks': [
      `${PROMPTS} :: session/prompt: an image goes to the model, its echo does not come back, a load shows it again`,
    ],
  },
  'calls, permission, ends': {
    diffs: [
      'packages/ai-agent/test/acp/editor.engine.test.ts :: diffs with absolute paths, locations, permission, live output as bounded text, and no fs or terminal',
    ],
    'permission cancelled': [
      `${PROMPTS} :: session/request_permission: “cancelled” is no permission, and neither is an error`,
      `${PROMPTS} :: on session/cancel an open request is withdrawn and the call ends failed`,
    ],
    'stop reasons': [
      `${PROMPTS} :: stop reasons: end_turn, max_tokens, max_turn_requests, refusal; a broken model is end_turn with a sentence`,
    ],
    errors: [`${PROMPTS} :: errors: a stable code and a safe text; no stack, no path, no secret`],
  },
  transports: {
    stdio: [
      'packages/ai-agent/test/main.engine.test.ts :: lock free: the agent runs there; nothing but protocol on stdout; EOF ends all',
      'packages/ai-agent/test/main.engine.test.ts :: lock taken: it relays to the running agent as the local user; EOF ends only the connection',
    ],
    'one message per line, no batches': [
      `${PROMPTS} :: 2.8 a batch is one -32600, a bad line is answered at once and repeats nothing, and the rest goes on`,
      'packages/shared/test/node/line-splitter.test.ts :: however they are cut, the lines are the same; one that is too long takes no other with it',
    ],
    'a limit for a message': [
      'packages/ai-agent/test/acp/stdio-end.test.ts :: a message over the limit is refused with one error, and the next one is answered',
    ],
    WebSocket: ['packages/ai-agent/test/acp/server.test.ts :: a client that leaves ends nothing'],
  },
  'what bites': {
    'order of updates': [`${PROMPTS} :: 2.1 updates are in order and all before the response`],
    'order of messages': [`${ORDER} :: over %s effects are in the order of the messages`],
    'private data in _meta only': [
      `${FOREIGN} :: nothing of ours is on the wire`,
      `${PROMPTS} :: _meta: trace context of the client is taken and left alone; none of ours has its names`,
    ],
    'answers that nobody checks': [
      'packages/service/test/socket/chat-socket.test.ts :: an answer of the agent that is none of the protocol ends it with an error, and is not passed on',
    ],
    'typed errors': [
      'packages/ai-agent/test/acp/server.test.ts :: what is wrong is a typed error with a safe text',
    ],
    'we check cwd, session and order': [
      `${SESSIONS} :: initialize comes first`,
      `${SESSIONS} :: session/new: an id, modes, config options; cwd absolute; mcpServers required`,
    ],
    'cancel has its own signal': [
      'packages/ai-agent/test/acp/server.test.ts :: a cancel right behind a prompt finds it',
    ],
    'end of stdin': [
      'packages/ai-agent/test/acp/stdio-end.test.ts :: end of stdin: the prompt is ended, exit code 0',
      'packages/ai-agent/test/acp/stdio-end.test.ts :: an editor that is killed takes its agent along',
    ],
    'back-pressure': [
      'packages/ai-agent/test/acp/stdio-end.test.ts :: memory stays bounded however much there is to say, and it gets all of it when it reads again',
    ],
  },
  'editors and foreign clients': {
    acpx: [
      'packages/ai-agent/test/acp/launcher.engine.test.ts :: acpx: a command runs in a real sandbox; interrupted, neither gate nor agent is left',
      'packages/ai-agent/test/acp/acpx.engine.test.ts :: beside a running agent: sessions made, prompted, resumed, set, listed, closed',
    ],
    'an editor’s folder': [
      'packages/ai-agent/test/acp/conformance/sessions.test.ts :: session/new: an editor’s folder is recorded; without notices the answer is the model’s alone; SSE is refused',
    ],
    'live shell output, terminal': [
      `${FOREIGN} :: with the convention %s: a terminal, its data, its exit`,
      `${UPDATES} :: live shell output: a client that asks for %s gets it under that name, another gets text`,
    ],
    'live shell output, text': [
      `${FOREIGN} :: without it: bounded text, repeated at most twice a second, and the result at the end`,
    ],
    'no settled copy, no echo': [
      `${FOREIGN} :: text that was streamed does not come again when it settles; text that was not, does`,
      `${FOREIGN} :: the echo of its own prompt is dropped, another’s message is shown`,
    ],
    'a withdrawn answer': [`${FOREIGN} :: a withdrawn answer is closed with a note before the next one`],
    'our own client': [
      'packages/ai-agent/test/acp/server.test.ts :: load after n: what is settled, what is in flight, then live, all before and behind the answer',
    ],
  },
}
