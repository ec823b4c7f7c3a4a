/** The choice of the wire: by the address, and by what providers said of models on another API. */
import { describe, expect, test } from 'vitest'
import type { WireName } from '@sandlot/shared/account/models-api'
import { type ErrorContext, toModelError } from '../../src/model/errors.ts'
import { failureOfResponse } from '../../src/model/failure.ts'
import { likelyWires, wireAfter, wireOfAddress } from '../../src/model/wires/choice.ts'

const CONTEXT: ErrorContext = { model: 'm', baseUrl: 'https://host.test/v1', apiKey: 'sk-x' }

test.each<[string, WireName, readonly WireName[]]>([
  ['https://api.openai.com/v1', 'responses', ['responses', 'chat']],
  ['https://eu.api.openai.com/v1', 'responses', ['responses', 'chat']],
  ['https://ours.openai.azure.com/openai/v1', 'responses', ['responses', 'chat']],
  ['https://ours.openai.azure.com/openai/deployments/gpt?api-version=2024-10-21', 'chat', []],
  ['https://api.anthropic.com', 'anthropic', ['anthropic', 'chat']],
  ['https://api.anthropic.com/v1', 'anthropic', ['anthropic', 'chat']],
  ['https://api.deepseek.com/anthropic', 'anthropic', ['anthropic', 'chat']],
  ['https://api.z.ai/api/anthropic/v1/', 'anthropic', ['anthropic', 'chat']],
  ['https://openrouter.ai/api/v1', 'chat', []],
  ['https://api.openai.com.evil.test/v1', 'chat', []],
  ['http://127.0.0.1:11434/v1', 'chat', []],
])('%s begins with %s', (address, first, likely) => {
  const all = likely.length === 0 ? ['chat', 'responses', 'anthropic'] : likely
  expect([wireOfAddress(new URL(address)), likelyWires(new URL(address))]).toEqual([first, all])
})

/** Lines of: status, the API that refused, the one it points to (or none), words or body; source. */
const rowsOf = (table: string) =>
  table
    .trim()
    .split('\n')
    .map((line) => {
      const [, status, asked, to, said = '', about = '', address] =
        /^(\d+) (\w+) (\w+) (.*) ← (.*?)(?: at (\S+))?$/.exec(line) ?? []
      const body = said.startsWith('{') ? said : JSON.stringify({ error: { message: said } })
      const failure = failureOfResponse(Number(status), new Headers(), body)
      const url = new URL(address ?? 'https://host.test/v1')
      return {
        about,
        to: to === 'none' ? undefined : to,
        found: wireAfter(toModelError(failure, CONTEXT), asked as WireName, url),
      }
    })

test.each(
  rowsOf(`
404 chat responses This model is only supported in v1/responses and not in v1/chat/completions. ← OpenAI, deep research and codex: lobehub/lobehub#8287, n8n-io/n8n#18352
404 chat responses This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions? ← OpenAI: langbot-app/LangBot#400
400 chat responses Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead. ← OpenAI: pipecat-ai/pipecat#4043
400 chat responses Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'. ← OpenAI: danny-avila/LibreChat#14231
400 chat responses The chatCompletion operation does not work with the specified model, gpt-5.1-codex. Please choose different model and try again. ← Azure: langchain-ai/langchain-azure#228, anomalyco/opencode#9035
400 chat responses model "gpt-5.4" is not accessible via the /chat/completions endpoint ← Copilot: caozhiyuan/copilot-api#113, github/copilot-cli#4337
400 chat responses Unsupported legacy protocol: /v1/chat/completions is not supported. Please use /v1/responses. ← a relay: Wei-Shaw/sub2api#885
400 chat responses {"error":{"message":"Provider returned error","metadata":{"raw":"This model is only supported in v1/responses and not in v1/chat/completions."}}} ← OpenRouter, in the form of charmbracelet/crush#2243
404 chat anthropic {"type":"error","error":{"type":"not_found_error","message":"Not Found"}} ← the form of Anthropic at https://api.deepseek.com/anthropic
400 responses chat The requested model 'gpt-4o-search-preview' is not supported with the Responses API. ← OpenAI: Laisky/one-api#88, CherryHQ/cherry-studio#6170
400 responses chat model claude-opus-4.5 does not support Responses API. ← Copilot: BerriAI/litellm#20103, decolua/9router#1062
404 responses chat Azure OpenAI Responses API is not enabled in this region. Please check https://aka.ms/aoai/responsesapi/availability ← Azure: responsibleai/ASSERT#129
400 responses chat Azure OpenAI Responses API is enabled only for api-version 2025-03-01-preview and later ← Azure: Aider-AI/aider#4029
401 responses chat You have insufficient permissions for this operation. Missing scopes: api.responses.write. ← OpenAI: anomalyco/opencode#21928
400 responses chat The requested model 'gpt-4o-audio-preview' is not supported with the Responses API. ← a model with the name of a feature
404 responses chat {"code":404,"message":"File Not Found","type":"not_found_error"} ← llama.cpp: ggml-org/llama.cpp#14702
404 responses chat {"detail":"Not Found"} ← FastAPI
404 responses chat Invalid URL (POST /v1/responses) (request id: 20250718) ← New API: QuantumNous/new-api#1396
400 anthropic chat unknown request path ← AIBrix: vllm-project/aibrix#2110
200 responses chat Unexpected endpoint or method. (POST /v1/responses) ← LM Studio
`),
)('lives elsewhere: $about', ({ found, to }) => {
  expect(to).toMatch(/^(?:chat|responses|anthropic)$/)
  expect(found).toBe(to)
})

test.each(
  rowsOf(`
404 responses none The model \`x\` does not exist or you do not have access to it. ← a model that is not there
404 responses none model "x" not found, try pulling it first ← a model that Ollama lacks
404 anthropic none {"type":"error","error":{"type":"not_found_error","message":"model: x"}} ← a model that Anthropic lacks
404 responses none The API deployment for this resource does not exist. ← a deployment that Azure lacks
404 responses none No endpoints found that support tool use. ← the routes of OpenRouter
404 chat none {"detail":"Not Found"} ← a path that an unknown host lacks
400 chat none Unsupported parameter: 'max_tokens' is not supported with this model. ← a parameter
400 responses none Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'. ← a parameter that moved
400 chat none The chat completions API does not support image input for this model. ← a feature
400 chat none Streaming is not supported for /chat/completions with this deployment. ← streaming
400 chat none n > 1 is not supported in chat completions ← a number of answers
400 chat none Tools are not supported in chat completions for this model. ← tools
400 chat none The parameter 'stop' is not supported in v1/chat/completions with this model. ← a parameter of this API
401 responses none Incorrect API key provided: sk-x. ← a wrong key at https://api.openai.com/v1
429 chat none Requests to /v1/chat/completions are not allowed for 20s. Use /v1/responses. ← a throttle that names paths
400 chat none This model's maximum context length is 8192 tokens. ← an overflow
400 chat none An assistant message with 'tool_calls' must be followed by tool messages. ← a history
400 responses none Your messages were flagged. The response cannot be shown. ← ordinary words
`),
)('is about something else: $about', ({ found, about }) => {
  expect(about).not.toBe('')
  expect(found).toBe(undefined)
})

describe('a refused key', () => {
  const sentence = (apiKey: string, baseUrl: string, setIn?: 'page') =>
    toModelError(failureOfResponse(401, new Headers(), '{}'), { model: 'm', apiKey, baseUrl, setIn }).message

  test.each([
    ['sk-ant-api03-x', 'https://api.openai.com/v1', 'Anthropic'],
    ['sk-proj-x', 'https://api.anthropic.com', 'OpenAI'],
    ['sk-or-v1-x', 'https://api.openai.com/v1', 'OpenRouter'],
    ['gsk_x', 'https://api.x.ai/v1', 'Groq'],
    ['xai-x', 'https://api.groq.com/openai/v1', 'xAI'],
  ])('%s at %s is one of %s', (apiKey, baseUrl, vendor) => {
    expect(sentence(apiKey, baseUrl)).toContain(`It looks like a key of ${vendor}.`)
  })

  test('of the right provider, or of none that is known, is only refused; the place is where it was set', () => {
    expect(sentence('sk-ant-x', 'https://api.anthropic.com/v1')).not.toContain('looks like')
    expect(sentence('sk-1234', 'https://api.anthropic.com/v1')).not.toContain('looks like')
    expect(sentence('sk-1234', 'https://host.test')).toContain('OPENAI_API_KEY')
    for (const key of ['sk-1234', ''])
      expect(sentence(key, 'https://host.test', 'page')).toMatch(/^(?!.*OPENAI).*Settings → Models\.$/)
  })
})
