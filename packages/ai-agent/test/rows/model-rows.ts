/** Requirements of models, row by row, in the form of loop-rows.ts. */
const TEST = 'packages/ai-agent/test'

export const MODEL_ROWS: Record<string, Record<string, readonly string[]>> = {
  models: {
    'replayed in order, for its origin alone': [
      `${TEST}/loop/replays.test.ts :: go with a copy of the chat, also long ones`,
      `${TEST}/loop/replays.test.ts :: is asked once more without, and not sent any again`,
      `${TEST}/model/origin.test.ts :: it changes with the address, the key, the family of models and the deployment, and with nothing else`,
      'packages/service/test/http/chats/provider-data.test.ts :: what a provider wants back with an answer is in no export, snapshot, output or search',
    ],
    Responses: [
      `${TEST}/model/responses-wire.test.ts :: is stateless, and asks only a model that reasons for its reasoning`,
      `${TEST}/model/responses-wire.test.ts :: property: whatever was said, however it is cut, returns as it was`,
      `${TEST}/model/responses-answers.test.ts :: a stream that is cut at any byte gives the same answer`,
    ],
    Messages: [
      `${TEST}/model/anthropic-request.test.ts :: thoughts between texts and calls, unchanged`,
      `${TEST}/model/anthropic-request.test.ts :: property: roles alternate, and every text and result of a history is there once`,
      `${TEST}/model/anthropic-answers.test.ts :: a stream that is cut at any byte gives the same answer`,
    ],
    'the choice makes itself': [
      `${TEST}/model/choosing-model.test.ts :: is asked there at once, and from then on; the switch is reported once`,
      `${TEST}/model/choosing-model.test.ts :: is put back, and the error tells both refusals and where the API is chosen`,
      `${TEST}/model/choosing-model.test.ts :: without streaming it asks for a whole answer over each API`,
    ],
    'strict where nothing is lost': [
      `${TEST}/model/strict-schema.test.ts :: converts or declines; arguments that were valid are valid in it, and return as they were`,
      `${TEST}/model/responses-wire.test.ts :: ends where the endpoint refuses the schema`,
    ],
    'prompt caching': [
      `${TEST}/loop/stable-prefix.test.ts :: a chat of forty requests over $wire.name: each begins with the one before, but for causes that are counted`,
      `${TEST}/model/anthropic-request.test.ts :: the next request begins with this one, and has a mark where this one ended`,
    ],
    'AGENTS.md': [
      `${TEST}/config/instruction-files.test.ts :: the nearest is whole, the root is cut first, and no character is broken`,
      `${TEST}/config/instruction-files.test.ts :: a paused sandbox is woken`,
      `${TEST}/config/instruction-files.test.ts :: a stopped one is not started: the last text with its time, the same at every prompt`,
    ],
    'aliases of arguments': [
      `${TEST}/tools/argument-aliases.test.ts :: runs, is asked about and shown under its true names, and goes back as the model wrote it`,
      `${TEST}/tools/argument-aliases.test.ts :: is judged by its true names, and refused with both names where it has two`,
    ],
    'windows known or learnt': [
      `${TEST}/loop/small-window.test.ts :: without a word about it: the third request has learnt it, and fits; one note says so`,
      `${TEST}/loop/small-window.test.ts :: is asked once without streaming; that error is the error, and the next message works`,
      `${TEST}/model/loaded-window.test.ts :: set, then published, then what the server says, then an assumption`,
    ],
    'facts from a kept table': [
      `${TEST}/model/facts.test.ts :: property: every answer costs what the library computes: models, steps, caches, moments`,
      `${TEST}/model/facts.test.ts :: the data is not loaded for an endpoint of our own`,
    ],
    'servers by others': [
      `${TEST}/peers/litellm.engine.test.ts :: calls side by side, and their results`,
      `${TEST}/peers/llama-cpp.engine.test.ts :: a conversation that outgrows its window goes on`,
    ],
  },
}
