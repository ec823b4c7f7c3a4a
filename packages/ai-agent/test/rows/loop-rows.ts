/**
 * Requirements of the agent, row by row, and the test that shows each. `file :: test` is below the
 * repository's folder; the test's title as it stands there. rows.test.ts checks that each exists.
 */
export const LOOP_ROWS: Record<string, Record<string, readonly string[]>> = {
  'prompt and continuation': {
    'wait for all calls': [
      'packages/ai-agent/test/loop/agent-loop.test.ts :: onAllToolCallsComplete: two requests, the second only after all outcomes',
    ],
    'results go to the model': [
      'packages/ai-agent/test/loop/agent-loop.test.ts :: onAllToolCallsComplete: two requests, the second only after all outcomes',
      'packages/ai-agent/test/history/check.test.ts :: property: it says what a strict provider would say of the bytes',
    ],
    'loop until no calls': [
      'packages/ai-agent/test/scripts/quirks.ts :: bug 8: stop although calls came',
      'packages/ai-agent/test/scripts/quirks.ts :: three rounds',
    ],
    'event order': [
      'packages/ai-agent/test/loop/agent-loop.test.ts :: the whole message is settled before its calls are announced, and all calls before one runs',
      'packages/ai-agent/test/calls/scheduler.test.ts :: any batch: one announcement, one outcome, and the start between them, for every call',
    ],
    'mid-stream call': [
      'packages/ai-agent/test/plain/drafts.test.ts :: mid-stream call: its arguments are shown before they are whole, are no call yet, and are taken back with a broken answer',
      'packages/web/test/app/pages.e2e.test.ts :: calls are seen while the model writes them, and give way to their cards',
      'packages/ai-agent/test/plain/endings.test.ts :: a call whose arguments are whole does not run before the whole message is',
      'packages/ai-agent/test/model/http-model.test.ts :: mid-stream tool call interruption: broken, silent, or only kept alive, no call comes out',
      'packages/ai-agent/test/scripts/quirks.ts :: mid-stream tool call interruption: a connection that breaks in the middle of a call',
    ],
    'accumulated text': [
      'packages/ai-agent/test/plain/endings.test.ts :: property: the text of every turn is kept with it, and the prompt’s answer is that of the last',
      'packages/service/test/http/chats/chat.test.ts :: answers with the last text, the results in the model’s order, and the usage',
    ],
    'guaranteed answer': [
      'packages/ai-agent/test/plain/endings.test.ts :: guaranteed answer: %s, %s',
      'packages/ai-agent/test/loop/agent-loop.test.ts :: still empty: a sentence that names what failed',
      'packages/ai-agent/test/scripts/endings.ts :: bug 2: empty after a failure names what failed',
    ],
    'failure pattern': [
      'packages/shared/test/transcript/failure-pattern.test.ts :: failure pattern: %s',
      'packages/shared/test/transcript/transcript.test.ts :: the end of a prompt knows that its last calls failed for one cause, of this prompt only',
    ],
    'session history': [
      'packages/ai-agent/test/loop/agent-loop.test.ts :: a second prompt extends the first: every request begins with the bytes of the one before',
      'packages/ai-agent/test/session/session.test.ts :: a prompt that a process left is taken up: finished calls are not run again, the cut text is withdrawn',
      'packages/ai-agent/test/session/session.test.ts :: waits over a restart, is asked once, and runs once',
      'packages/ai-agent/test/plain/readme.test.ts :: killed while the model answers it goes on where it stood, without making the call again',
    ],
    'stop reasons': [
      'packages/ai-agent/test/acp/conformance/prompts.test.ts :: stop reasons: end_turn, max_tokens, max_turn_requests, refusal; a broken model is end_turn with a sentence',
    ],
    'tools off': [
      'packages/ai-agent/test/config/tool-offer.test.ts :: no `tools` member, no word about tools, and a call that the model makes up finds nothing',
    ],
    steering: [
      'packages/ai-agent/test/plain/run-agent.test.ts :: %s: right behind the end it is a prompt of its own',
      'packages/ai-agent/test/session/session.test.ts :: steer: joins behind the results of the round, before the next request',
      'packages/ai-agent/test/session/session.test.ts :: is kept over a Stop and goes with the next prompt',
      'packages/ai-agent/test/session/withdraw.test.ts :: property: withdrawn or read, as it was answered, in any order and over a death',
      'packages/web/test/chat/queued.e2e.test.ts :: a message that waits is taken back into the composer, and vanishes from every tab',
    ],
    'concurrent prompts': [
      'packages/ai-agent/test/session/session.test.ts :: steer during the final answer, and queue: they become the next prompts, in order',
      'packages/ai-agent/test/session/session.test.ts :: refuse: busy',
    ],
  },
  'scheduling and execution': {
    states: ['packages/ai-agent/test/calls/scheduler.test.ts :: nothing of a call comes after its outcome'],
    pipeline: [
      'packages/ai-agent/test/calls/said-by-tool.test.ts :: property: whatever a tool says, its call has one outcome, its siblings theirs, and every event can be stored and read',
      'packages/ai-agent/test/plain/plain-tool.test.ts :: only arguments that fit; the model reads what does not',
      'packages/ai-agent/test/calls/policies/policies.test.ts :: a throw at place %i gives one outcome and one metrics record',
      'packages/ai-agent/test/calls/policies/policies.test.ts :: every problem is listed with its place',
    ],
    'parallel, ordered around writes': [
      'packages/ai-agent/test/calls/scheduler.test.ts :: reads run together up to the limit; what changes things runs alone and in order',
      'packages/ai-agent/test/calls/order.test.ts :: any calls, asked for and ended in any order: a change alone, reads together to the limit, the model’s order kept',
    ],
    approval: [
      'packages/ai-agent/test/session/session.test.ts :: the first answer wins; allowed runs, and later ones hear so',
      'packages/ai-agent/test/calls/questions.test.ts :: a denied call cancels none of its siblings, and nobody waits for it',
    ],
    cancel: [
      'packages/ai-agent/test/plain/left-behind.test.ts :: a model that does not hear a Stop',
      'packages/ai-agent/test/loop/agent-loop.test.ts :: in the middle of parallel calls: one outcome each, at once usable',
      'packages/ai-agent/test/tools/sandbox-command/sandboxed-tool-executor.test.ts :: Stop ends it and everything it started, and keeps what it printed',
    ],
    timeout: [
      'packages/ai-agent/test/plain/left-behind.test.ts :: a tool that speaks without a pause is ended at its limit, and does not keep others from speaking',
      'packages/ai-agent/test/calls/policies/limits-by-kind.test.ts :: file tools 5 s, searches 30 s, handlers 10 s, the shell 120 s unless the call says otherwise',
      'packages/ai-agent/test/tools/sandbox-command/sandboxed-tool-executor.test.ts :: at its limit it is ended with everything it started, and keeps what it printed',
    ],
    retries: [
      'packages/ai-agent/test/calls/policies/cache-retry-rate.test.ts :: once, where the tool declares it and the failure may pass; reported in the result',
      'packages/ai-agent/test/calls/policies/order.test.ts :: each try has the whole limit, and the waiting between them takes nothing from it',
    ],
    cache: [
      'packages/ai-agent/test/calls/policies/cache-retry-rate.test.ts :: each user has results of their own, and only their own changes drop them',
      'packages/ai-agent/test/calls/policies/cache-retry-rate.test.ts :: the same arguments give the same result, marked in the event and in the metrics',
      'packages/ai-agent/test/calls/policies/cache-retry-rate.test.ts :: a write or a command drops what was known',
    ],
    'rate limit per tool': [
      'packages/ai-agent/test/calls/policies/cache-retry-rate.test.ts :: an empty bucket is a result with the wait, and the tool is not called',
    ],
    'live output': [
      'packages/ai-agent/test/tools/output/live-output.test.ts :: a fast command skips ahead: few pieces, none large, and the last bytes are in the last piece',
    ],
    'tools own their events': [
      'packages/ai-agent/test/rows/tool-names.test.ts :: no tool is known by its name to anything but itself',
      'packages/service/test/socket/chat-socket.test.ts :: is accepted, its events pass unchanged and in order, and it is done',
    ],
    outcome: [
      'packages/ai-agent/test/calls/said-by-tool.test.ts :: what cannot be used ends invalid_output, and says what was wrong with it',
      'packages/ai-agent/test/mcp/stdio.test.ts :: what it returns is text for the model and things for the screen; its failures are failures',
      'packages/ai-agent/test/calls/scheduler.test.ts :: are those of the vocabulary, carry prompt, turn and time, and live ones are marked',
    ],
    'batch end': [
      'packages/ai-agent/test/plain/example.test.ts :: an answer with its calls is one write, the last outcome with the turn’s end another',
    ],
    'request adapter': [
      'packages/ai-agent/test/calls/tool-request-adapter.test.ts :: anything at all gives a request or a refusal',
    ],
    truncation: [
      'packages/ai-agent/test/tools/output/truncate-output.test.ts :: a long text keeps a fifth of head and four fifths of tail, in whole lines, with a notice that says how to go on',
      'packages/ai-agent/test/calls/scheduler.test.ts :: of one turn fit into the budget: the largest are shortened, the others are not',
      'packages/storage/test/support/contract.ts :: deleting takes everything of the session and nothing else',
    ],
    'hygiene of results': [
      'packages/ai-agent/test/calls/scheduler.test.ts :: are well-formed, without NUL, never empty',
      'packages/ai-agent/test/tools/sandbox-command/sandboxed-tool-executor.test.ts :: colours are for the screen, plain text for the model',
    ],
    'images and files': [
      'packages/ai-agent/test/plain/example.test.ts :: bug 23: images of results and of the user, from the log: all results, then one message of the user',
      'packages/ai-agent/test/model/wire.test.ts :: without image input: a sentence with type and size',
    ],
    workspace: [
      'packages/ai-agent/test/tools/builtin-tools.test.ts :: makes directories, says how many bytes, shows the change',
      'packages/ai-agent/test/tools/builtin-tools.test.ts :: a link out of the workspace leads nowhere',
    ],
    'user isolation': [
      'packages/ai-agent/test/calls/policies/cache-retry-rate.test.ts :: each user has results of their own, and only their own changes drop them',
      'packages/ai-agent/test/session/session.test.ts :: another user’s session is not found; one’s own is listed, changed and deleted',
      'packages/ai-agent/test/calls/policies/cache-retry-rate.test.ts :: each user and each tool has its own bucket',
    ],
    metrics: [
      'packages/ai-agent/test/calls/policies/policies.test.ts :: waiting is kept apart from running',
      'packages/ai-agent/test/calls/policies/policies.test.ts :: no calls are zeros; many calls and names stay bounded',
      'packages/ai-agent/test/metrics/prompt-metrics.test.ts :: a prompt is counted once, with its turns, tokens, requests and our own delays',
    ],
    'log hygiene': [
      'packages/ai-agent/test/calls/policies/policies.test.ts :: every call is counted, and the log says nothing of what went in or came out',
      'packages/ai-agent/test/config/config.test.ts :: hides configured secrets and what looks like a key, wherever it stands',
    ],
    hooks: [
      'packages/ai-agent/test/calls/policies/policies.test.ts :: a hook is a policy: it sees every call, may end it, and is told how it ended',
    ],
    thinking: [
      'packages/shared/test/transcript/transcript.test.ts :: what is in flight has words: thinking, writing, running, waiting, reading the results',
    ],
    'error policy': [
      'packages/ai-agent/test/scripts/endings.ts :: stop at the first failure',
      'packages/ai-agent/test/scripts/endings.ts :: a tool that nothing goes without',
      'packages/ai-agent/test/scripts/endings.ts :: a failure that ends nothing',
      'packages/ai-agent/test/limits/error-policy.test.ts :: on error %s, a call that ends %s, fatal: %s; ends the prompt: %s',
    ],
    'unknown arguments': [
      'packages/ai-agent/test/calls/policies/policies.test.ts :: unknown arguments are refused with the known names',
    ],
    elicitation: [
      'packages/ai-agent/test/tools/ask-user.test.ts :: the question is in the log, survives a restart, and the first answer counts',
      'packages/ai-agent/test/acp/elicitation.test.ts :: an editor that shows forms gets the form, and its answer is the user’s',
      'packages/ai-agent/test/acp/elicitation.test.ts :: a form that an editor cannot show is asked as text by the model',
    ],
    'per-user secrets': [
      'packages/ai-agent/test/people/user-secrets.test.ts :: reads a secret, and nothing it says has it: not the model’s text, not the log, not the screen',
      'packages/ai-agent/test/people/user-secrets.test.ts :: without the secret it ends needs_auth, and says what to set',
    ],
  },
  registry: {
    'definitions validated': [
      'packages/ai-agent/test/tools/registry.test.ts :: every problem is listed at once, with the tool it belongs to',
      'packages/ai-agent/test/mcp/stdio.test.ts :: how many tools there are is logged once for each new list',
    ],
    'no hard-coded schemas': [
      'packages/ai-agent/test/tools/registry.test.ts :: the model gets derived schemas, the same bytes each time, whatever the order of registration',
    ],
    'namespaced ids': [
      'packages/ai-agent/test/mcp/exposed-names.test.ts :: are legal, different, and the same in whatever order the tools come',
    ],
    discovery: [
      'packages/ai-agent/test/tools/registry.test.ts :: finding one of a thousand tools does not look at the others',
    ],
    availability: [
      'packages/ai-agent/test/mcp/http.test.ts :: that is down is not offered, a call of it says so, and it is offered again when it is back',
      'packages/ai-agent/test/mcp/stdio.test.ts :: a changed list of tools takes effect with the next prompt, and an unchanged one is the same object',
    ],
    'argument defaults': [
      'packages/ai-agent/test/calls/policies/policies.test.ts :: numbers, booleans and lists that came as text are read, and the result says so',
      'packages/ai-agent/test/calls/policies/policies.test.ts :: null for what may be left out is left out; where it must be there, the model is told',
      'mcp/flights-mcp/test/announced.test.ts :: is announced with its arguments and defaults',
      'mcp/google-calendar-mcp/test/announced.test.ts :: is announced with its arguments and defaults',
    ],
    'MCP and built-in tools': [
      'packages/ai-agent/test/mcp/agent.test.ts :: gets its result, in one prompt with built-in tools',
    ],
    'echo tool': ['packages/ai-agent/test/tools/builtin-tools.test.ts :: echo'],
    guide: [
      'packages/ai-agent/test/tools/add-a-tool.test.ts :: the example of the page compiles, and its test passes',
      'test/docs.test.ts :: the reference of the tools is that of the tools',
    ],
  },
  'model client': {
    'streaming and not': [
      'packages/ai-agent/test/model/providers.test.ts :: without a stream it is the same message',
      'packages/ai-agent/test/model/http-model.test.ts :: a JSON body under stream: true',
    ],
    quirks: [
      'packages/ai-agent/test/bugs.test.ts :: each of the thirty bugs has a test with its number',
      'packages/ai-agent/test/model/providers.test.ts :: as it was streamed',
      'packages/ai-agent/test/model/providers.test.ts :: property: any cut of the bytes gives the same answer',
      'packages/ai-agent/test/model/providers.test.ts :: %s has a documented stream',
      'packages/ai-agent/test/model/calls.test.ts :: bug 3: index missing, all 0, or from 1',
      'packages/ai-agent/test/model/calls.test.ts :: bug 6: arguments in odd forms',
      'packages/ai-agent/test/model/calls.test.ts :: bug 7: names',
      'packages/ai-agent/test/model/calls.test.ts :: bug 10: flushed twice',
    ],
    'no provider knowledge needed': [
      'packages/ai-agent/test/calls/call-ids.test.ts :: property: its own model gets each id back as it was, another one such as every provider takes, pairs kept',
      'packages/ai-agent/test/model/think-tags.test.ts :: without a profile it is text',
    ],
    'invalid calls': [
      'packages/ai-agent/test/calls/tool-request-adapter.test.ts :: arguments that were cut off are not run, even when they parse',
      'packages/ai-agent/test/scripts/quirks.ts :: bug 9: broken JSON is not run',
    ],
    'error classes': [
      'packages/ai-agent/test/model/error-classes.test.ts :: %s, again: %j: %s (%i)',
      'packages/ai-agent/test/model/errors.test.ts :: %s: %i %j',
    ],
    retry: [
      'packages/ai-agent/test/loop/retry.test.ts :: full jitter below a growing cap, up to four attempts',
      'packages/ai-agent/test/loop/retry.test.ts :: what the provider asks for is waited, up to a minute; longer is told',
      'packages/ai-agent/test/loop/agent-loop.test.ts :: a stream that breaks off is asked again; what was shown stays as cut, and the wait is said',
    ],
    'fallback model': [
      'packages/ai-agent/test/scripts/endings.ts :: fallback model: another one answers when this one is overloaded',
      'packages/ai-agent/test/scripts/endings.ts :: fallback model: a wrong key is no reason',
      'packages/ai-agent/test/loop/fallback-model.test.ts :: after %s: %s',
    ],
    'idle, progress, total': [
      'packages/ai-agent/test/model/http-model.test.ts :: bug 18: silence before the head, in the middle, and only signs of life',
      'packages/ai-agent/test/model/http-model.test.ts :: bug 18: the clock stands still while this process is busy with a piece',
    ],
    'back-pressure': [
      'packages/ai-agent/test/session/join.test.ts :: a reader that does not read is closed, holds up nothing, and resumes',
      'packages/service/test/socket/join.test.ts :: a reader that does not read is dropped, delays no other, and gets the rest by resuming',
    ],
    'stable prefix': [
      'packages/ai-agent/test/loop/stable-prefix.test.ts :: a chat of forty requests over $wire.name: each begins with the one before, but for causes that are counted',
      'packages/ai-agent/test/model/http-model.test.ts :: bug 26: is on the wire exactly so, byte for byte the same each time',
      'packages/ai-agent/test/mcp/agent.test.ts :: bug 26: the tools of a prompt are the same bytes in all its requests, whatever a server says meanwhile',
    ],
    reasoning: [
      'packages/ai-agent/test/plain/example.test.ts :: reasoning is dropped on a change of model, which is recorded in the prompt; cost adds up over both',
    ],
    cost: [
      'packages/ai-agent/test/limits/prices.test.ts :: cost: cached input and reasoning output have their own prices',
      'packages/ai-agent/test/limits/prices.test.ts :: cost: an unknown model, and an answer that nobody counted, cost nothing that is known',
    ],
  },
  durability: {
    'event log': [
      'packages/ai-agent/test/calls/scheduler.test.ts :: a tool goes on only after its event was stored',
      'packages/storage/test/sessions/crash.test.ts :: killed after %i acknowledgements',
      'packages/storage/test/database/group-commit.test.ts :: property: of concurrent writes, each session has what was acknowledged, in order',
    ],
    'crash resume': [
      'packages/ai-agent/test/plain/readme.test.ts :: killed while the model answers it goes on where it stood, without making the call again',
      'packages/ai-agent/test/session/session.test.ts :: a prompt that a process left is taken up: finished calls are not run again, the cut text is withdrawn',
      'packages/ai-agent/test/scripts/interruptions.ts :: bug 28: death in the middle of a write is reported, not repeated',
    ],
    'adopt the outcome': [
      'packages/ai-agent/test/tools/sandbox-command/sandboxed-tool-executor.test.ts :: takes a running command up again: once run, no byte lost or doubled',
      'packages/ai-agent/test/tools/sandbox-command/sandboxed-tool-executor.test.ts :: finds the end of a command that ended meanwhile',
      'packages/ai-agent/test/tools/sandbox-command/sandboxed-tool-executor.test.ts :: a command of another boot never runs again',
    ],
    'approval over restart': [
      'packages/ai-agent/test/session/session.test.ts :: waits over a restart, is asked once, and runs once',
    ],
    'idempotent submission': [
      'packages/ai-agent/test/plain/run-agent.test.ts :: is made once: sent again, whatever its text, it gives the same end, and asks nobody',
      'packages/ai-agent/test/session/session.test.ts :: is one prompt, however often it is sent, also to another session and after a restart',
    ],
    'one owner': [
      'packages/ai-agent/test/plain/run-agent.test.ts :: property: however their steps fall, every call has one outcome, the prompt one end, and nothing runs twice',
      'packages/ai-agent/test/session/owner.test.ts :: the older owner stops at its next write, asks the model no more, and ends no command of the newer one',
    ],
    'poison prompt': [
      'packages/ai-agent/test/scripts/interruptions.ts :: poison prompt: given up at the fourth time',
    ],
    reconnect: [
      'packages/ai-agent/test/session/join.test.ts :: cut at any event and resumed: the same settled log, each number once, and the same screen',
      'packages/ai-agent/test/session/join.test.ts :: a late joiner gets the text so far and the last output as one live event each',
    ],
    'fork, rewind': [
      'packages/ai-agent/test/session/fork.test.ts :: goes on after a prompt: what the model was told so far, outputs of its own, nothing of later',
      'packages/ai-agent/test/session/fork.test.ts :: before a prompt: without it; the first one gives an empty session',
    ],
    'crash campaign': [
      'packages/ai-agent/test/crash/crash.test.ts :: ended at any point and taken up, it comes to the same',
      'packages/ai-agent/test/crash/crash-process.test.ts :: a process that is killed',
      'packages/ai-agent/test/crash/crash.engine.test.ts :: a process that is killed while its commands run in a container',
    ],
  },
  limits: {
    budgets: [
      'packages/ai-agent/test/scripts/endings.ts :: a budget of calls',
      'packages/ai-agent/test/scripts/endings.ts :: a budget of tokens',
      'packages/ai-agent/test/limits/budgets.test.ts :: budgets, wall time: calls that would start after it do not, and it counts from the log over a restart',
      'packages/ai-agent/test/limits/period-budgets.test.ts :: %s: one below goes, at it there is a sentence',
      'packages/ai-agent/test/limits/period-budgets.test.ts :: model answers of all sessions together; the next day there are new ones',
      'packages/ai-agent/test/limits/period-budgets.test.ts :: calls of all sessions together, also after a restart and of a deleted one; refused ones are told',
      'packages/ai-agent/test/limits/period-budgets.test.ts :: tokens of all sessions together, from storage',
      'packages/ai-agent/test/limits/period-budgets.test.ts :: a provider that does not count has one answer of a day that is limited in dollars, not one of each message',
      'packages/ai-agent/test/limits/period-budgets.test.ts :: time of two prompts at once counts of both; a call after it is not run, and the next day it is',
    ],
    'loop detection': [
      'packages/ai-agent/test/history/no-progress.test.ts :: a circle through calls of a tool that does not exist, or through empty answers, ends it as any other',
      'packages/ai-agent/test/history/no-progress.test.ts :: property: any circle of one to five turns is seen in its fourth round, and not before its third is over',
      'packages/ai-agent/test/history/no-progress.test.ts :: polling with new results is no circle',
      'packages/ai-agent/test/history/no-progress.test.ts :: what the user says meanwhile begins it anew: who asks to look again is looked for',
      'packages/ai-agent/test/limits/repetition.test.ts :: property: however it is cut, a long run of anything with words is heard; its first round stays',
    ],
    compaction: [
      'packages/ai-agent/test/loop/when.test.ts :: just under 80 % of the window nothing is left out, just over it room is made',
      'packages/ai-agent/test/loop/summaries.test.ts :: a summary that does not end is cut, and the work goes on',
      'packages/ai-agent/test/loop/summaries.test.ts :: where a summary cannot make room it is not asked for before every request',
      'packages/ai-agent/test/loop/compaction.test.ts :: near the window old results go first, then a summary stands for the rest; the original stays in the log',
      'packages/ai-agent/test/loop/compaction.test.ts :: after an overflow error room is made once, with the same tools, and the request goes again',
      'packages/ai-agent/test/loop/compaction.test.ts :: a summary that fails falls back to leaving out results',
    ],
    'oversized single result': [
      'packages/ai-agent/test/history/messages.test.ts :: no single result takes more than a quarter of the window, those of a turn no more than a half',
    ],
  },
}
