/** The protocol, row by row, and the test that shows it; as in loop-rows.ts. */
const CONFORMANCE = 'packages/ai-agent/test/acp/conformance.test.ts'
const FOREIGN = 'packages/ai-agent/test/acp/for-foreign-client.test.ts'

export const ACP_ROWS: Record<string, Record<string, readonly string[]>> = {
  methods: {
    initialize: [
      `${CONFORMANCE} :: initialize: an unsupported version is answered with ours, never echoed, never an error`,
    ],
    authenticate: [`${CONFORMANCE} :: authenticate: there is no method, so every one is refused`],
    logout: [`${CONFORMANCE} :: logout: not advertised, not there`],
    'session/new': [
      `${CONFORMANCE} :: session/new: an id, modes, config options; cwd absolute; mcpServers required`,
    ],
    'session/load': [
      `${CONFORMANCE} :: session/load: the whole conversation again, all of it before the response`,
    ],
    'session/resume': [`${CONFORMANCE} :: session/resume: as load without replay, mcpServers optional`],
    'session/list': [
      `${CONFORMANCE} :: session/list: by folder, a folder that nobody used is empty, a cursor of ours only`,
    ],
    'session/close': [
      `${CONFORMANCE} :: session/close: cancels a running prompt as session/cancel does, then frees the session`,
    ],
    'session/delete': [`${CONFORMANCE} :: session/delete: gone for good, an unknown id succeeds silently`],
    'session/set_mode': [
      `${CONFORMANCE} :: session/set_mode: told as current_mode_update with currentModeId`,
    ],
    'session/set_config_option': [
      `${CONFORMANCE} :: session/set_config_option: answers the complete list`,
      `${CONFORMANCE} :: session/set_config_option: no boolean option for a client that does not know them`,
    ],
    'session/prompt': [
      `${CONFORMANCE} :: session/prompt: pending for the whole prompt; text, resource_link and an embedded resource`,
    ],
    'session/cancel': [
      `${CONFORMANCE} :: session/cancel: the prompt ends cancelled, never as an error, and the session goes on`,
    ],
    'session/request_permission': [
      `${CONFORMANCE} :: session/request_permission: the call as it is and options by id; what is selected is done`,
    ],
    'fs and terminal': [
      `${CONFORMANCE} :: fs/* and terminal/*: never called, whatever the client could do; every message is JSON-RPC 2.0`,
    ],
    elicitation: [
      'packages/ai-agent/test/acp/elicitation.test.ts :: an editor that shows forms gets the form, and its answer is the user’s',
    ],
    '$/cancel_request': [`${CONFORMANCE} :: $/cancel_request: a prompt is answered with a valid result`],
    _anything: [
      `${CONFORMANCE} :: _anything: an unknown request is -32601, an unknown notification is ignored`,
    ],
  },
  updates: {
    user_message_chunk: [`${CONFORMANCE} :: user_message_chunk: not the echo of the client’s own prompt`],
    'agent_message_chunk, agent_thought_chunk': [
      `${CONFORMANCE} :: agent_message_chunk and agent_thought_chunk: each piece once, without ours`,
    ],
    'tool_call, tool_call_update': [
      `${CONFORMANCE} :: tool_call and tool_call_update: title, kind, status, raw input and output, absolute locations`,
    ],
    plan: [`${CONFORMANCE} :: plan: the complete list each time`],
    available_commands_update: [
      `${CONFORMANCE} :: available_commands_update: behind the answer to session/new; each command works, without the model`,
    ],
    'current_mode_update, config_option_update': [
      `${CONFORMANCE} :: current_mode_update and config_option_update: both, whoever changed the mode`,
    ],
    session_info_update: [`${CONFORMANCE} :: session_info_update: the title and the time`],
    usage_update: [`${CONFORMANCE} :: usage_update: tokens in the context, and the size of the window`],
    'every event is one of the schema': [
      'packages/ai-agent/test/acp/types.test.ts :: every event that we emit is a SessionUpdate of the SDK, as JSON has it',
    ],
    'content blocks': [
      `${CONFORMANCE} :: session/prompt: an image goes to the model, its echo does not come back, a load shows it again`,
    ],
  },
  'calls, permission, ends': {
    diffs: [
      'packages/ai-agent/test/acp/editor.engine.test.ts :: diffs with absolute paths, locations, permission, live output as bounded text, and no fs or terminal',
    ],
    'permission cancelled': [
      `${CONFORMANCE} :: session/request_permission: “cancelled” is no permission, and neither is an error`,
      `${CONFORMANCE} :: on session/cancel an open request is withdrawn and the call ends failed`,
    ],
    'stop reasons': [
      `${CONFORMANCE} :: stop reasons: end_turn, max_tokens, max_turn_requests, refusal; a broken model is end_turn with a sentence`,
    ],
    errors: [`${CONFORMANCE} :: errors: a stable code and a safe text; no stack, no path, no secret`],
  },
  transports: {
    stdio: [
      'packages/ai-agent/test/main.test.ts :: lock free: the agent runs there; nothing but protocol on stdout; EOF ends all',
      'packages/ai-agent/test/main.test.ts :: lock taken: it relays to the running agent as the local user; EOF ends only the connection',
    ],
    'one message per line, no batches': [
      `${CONFORMANCE} :: 2.8 a batch is one -32600, a bad line is answered at once and repeats nothing, and the rest goes on`,
      'packages/ai-agent/test/acp/lines.test.ts :: however they are cut, the lines are the same; one that is too long takes no other with it',
    ],
    'a limit for a message': [
      'packages/ai-agent/test/acp/stdio-end.test.ts :: a message over the limit is refused with one error, and the next one is answered',
    ],
    WebSocket: ['packages/ai-agent/test/acp/server.test.ts :: a client that leaves ends nothing'],
  },
  'what bites': {
    'order of updates': [`${CONFORMANCE} :: 2.1 updates are in order and all before the response`],
    'private data in _meta only': [`${FOREIGN} :: nothing of ours is on the wire`],
    'typed errors': [
      'packages/ai-agent/test/acp/server.test.ts :: what is wrong is a typed error with a safe text',
    ],
    'we check cwd, session and order': [
      `${CONFORMANCE} :: initialize comes first`,
      `${CONFORMANCE} :: session/new: an id, modes, config options; cwd absolute; mcpServers required`,
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
      'packages/ai-agent/test/acp/acpx.test.ts :: beside a running agent: sessions made, prompted, resumed, set, listed, closed',
    ],
    'an editor’s folder': [
      'packages/ai-agent/test/acp/server.test.ts :: is the local user, gets no metadata of ours, no copy of what was streamed, and is told about its folder',
    ],
    'live shell output, terminal': [
      `${FOREIGN} :: with the terminal convention: a terminal, its data, its exit`,
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
