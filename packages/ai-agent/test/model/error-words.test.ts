/** More failures in the words of their providers, as public threads and documentation give them, one row each. */
import { describe, expect, test } from 'vitest'
import { toModelError } from '../../src/model/errors.ts'
import { failureOfResponse } from '../../src/model/failure.ts'
import type { ModelErrorClass } from '@sandlot/shared/chat/reasons'
import type { ModelError } from '../../src/model/model.ts'

const CONTEXT = { model: 'm', baseUrl: 'https://api.example/v1', apiKey: 'sk-abcdef' }

function errorOf(status: number, body: unknown, headers: Record<string, string> = {}): ModelError {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return toModelError(failureOfResponse(status, new Headers(headers), text), CONTEXT)
}
const said = (message: string, code = '') => ({ error: { message, code } })

/** Status, provider, words, and the provider's code where it counts. */
type Row = [number, string, string, string?]

const ROWS: Partial<Record<ModelErrorClass, Row[]>> = {
  replay_refused: [
    // openai/codex#8145, Wei-Shaw/sub2api#2863
    [400, 'OpenAI', 'The encrypted content gAAA...DQ== could not be verified.', 'invalid_encrypted_content'],
    [
      400,
      'OpenAI, without its code',
      'The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.',
    ],
    // vercel/ai#7543, NousResearch/hermes-agent#10217
    [
      404,
      'OpenAI, an id',
      "Item with id 'rs_688404' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
    ],
    // earendil-works/pi#886, openai/codex#6375
    [
      400,
      'Azure, a call alone',
      "Item 'fc_034ef5' of type 'function_call' was provided without its required 'reasoning' item: 'rs_034ef5'.",
    ],
    [
      400,
      'Azure, reasoning alone',
      "Item 'rs_057ab4' of type 'reasoning' was provided without its required following item.",
    ],
    [400, 'OpenAI, twice', 'Duplicate item found with id rs_057ab4. Remove duplicate items from your input.'],
    [400, 'a proxy', "Unknown parameter: 'input[2].encrypted_content'."],
    // hackerai-tech/hackerai#996, can1357/oh-my-pi#11928
    [
      400,
      'xAI',
      'Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a previous response.',
    ],
    [
      400,
      'OpenCode',
      'Error from provider (Console): Upstream request failed: [invalid_request_error] reasoning `encrypted_content` was not issued to this caller',
    ],
    [
      500,
      'LiteLLM',
      'litellm.APIConnectionError: OpenAIException - The encrypted content gAAA...DQ== could not be verified.',
    ],
    [400, 'OpenAI behind LiteLLM', "Unknown parameter: 'input[1].provider_specific_fields'."],
    [400, 'a path', "Missing required parameter: 'input[1].summary'."],
    [400, 'a path, behind', "Items of type 'reasoning' are not supported at input[2]."],
    [
      400,
      'Anthropic, a path',
      "messages.1.content.0: Input tag 'reasoning' found using 'type' does not match any of the expected tags",
    ],
    [400, 'Anthropic, no type', 'messages.1.content.0.type: Field required'],
    [400, 'Anthropic, a member', 'messages.1.content.0.caller: Extra inputs are not permitted'],
    // lbjlaq/Antigravity-Manager#139, RooCodeInc/Roo-Code#10351
    [
      400,
      'Anthropic, no thought',
      'messages.129.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block',
    ],
    // anthropics/claude-code#10627, anthropics/anthropic-sdk-python#1598
    [400, 'Anthropic, signature', 'messages.1.content.0: Invalid `signature` in `thinking` block'],
    [400, 'Anthropic, redacted', 'messages.3.content.1: Invalid `data` in `redacted_thinking` block'],
    // anthropics/claude-code#63203, vybestack/llxprt-code#1653
    [
      400,
      'Anthropic, changed',
      'messages.3.content.11: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.',
    ],
    [400, 'Anthropic, unsigned', 'messages.1.content.0.thinking.signature: Field required'],
    [400, 'Anthropic, last', 'messages.1: The final block in an assistant message cannot be `thinking`.'],
  ],
  context_overflow: [
    [400, 'Qianfan', 'Prompt tokens too long', 'tokens_too_long'],
    [
      400,
      'Anthropic, with the answer',
      'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    ],
    [
      400,
      'watsonx',
      'the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model',
    ],
    [400, 'Bedrock, Nova', 'Input Tokens Exceeded: Number of input tokens exceeds maximum length.'],
    [400, 'Bedrock, a limit', 'ValidationException: Input exceeds the max input token limit'],
    [400, 'Cohere', "total tokens exceeds the model's max of 4096"],
    [400, 'llama-box', 'Illegal param: prefill 744 tokens exceed n_ctx_per_seq'],
    [400, 'iFlytek', 'token数量超过上限。对话历史+问题的字数太多，需要精简输入。', '10907'],
    [400, 'a relay', '输入内容过长，超过模型限制'],
    [400, 'Copilot', 'prompt token count of 140000 exceeds the limit of 128000'],
    [400, 'Copilot, by its code', 'no', 'model_max_prompt_tokens_exceeded'],
    [422, 'TGI', 'Input validation error: `inputs` must have less than 4095 tokens. Given: 5000'],
    [400, 'Mistral', 'Prompt too large. Max tokens for this model are 32768'],
    [400, 'GLM', 'messages 参数非法。请检查文档。 Prompt 超长', '1261'],
    [
      400,
      'Triton',
      'The sum of prompt length (41000.0), query length (0) should not exceed max_num_tokens (40960)',
    ],
    [400, 'Volcengine', 'Total tokens of image and text exceed max message tokens.'],
    [
      400,
      'Fireworks',
      'The provided prompt is 33000 tokens long, but the maximum supported sequence length is 32768!',
    ],
    [
      413,
      'GitHub Models',
      'Request body too large for gpt-4o model. Max size: 8000 tokens.',
      'tokens_limit_reached',
    ],
    [400, 'Bedrock', "The number of tokens in the prompt exceeds the model's maximum number of tokens."],
    [400, 'Vertex', 'the input token count is 33000 but model only supports up to 32768.'],
    [400, 'Together', 'Input prompt (5000 tokens) is too long and exceeds limit of 4096'],
    [400, 'Qianfan', '输入长度超过模型最大上下文限制'],
    [400, 'vLLM', 'The engine prompt length 227861 exceeds the max_model_len 131072. Please reduce prompt.'],
    [400, 'vLLM', 'The decoder prompt (length 9000) is longer than the maximum model length of 8192.'],
    [400, 'vLLM, nothing left for the answer', 'max_tokens must be at least 1, got -512.'],
  ],
  quota: [
    [401, 'one-api', '该令牌额度已用尽'],
    [429, 'OpenAI, prepaid', 'no', 'credit_balance_exhausted'],
    [429, 'OpenAI, a limit', 'no', 'organization_spend_limit_exceeded'],
    [
      403,
      'Volcengine',
      'The request failed because your account has an overdue balance.',
      'AccountOverdueError',
    ],
    [429, 'Baidu', 'Daily free quota per user for AI Search exceeded', 'QUOTA_USER_DAILY_FREE'],
    [403, 'DashScope', 'Free quota exhausted', 'AllocationQuota.FreeTierOnly'],
    [400, 'Hugging Face', 'You have exceeded your monthly included credits for Inference Providers.'],
    [
      403,
      'xAI',
      'Your team has either used all available credits or reached its monthly spending limit.',
      'The caller does not have permission',
    ],
    [403, 'OpenRouter, a key', 'Key limit exceeded (total limit).', '403'],
    [
      400,
      'Anthropic',
      'You have reached your specified API usage limits. You will regain access on 2026-12-01.',
    ],
    [400, 'LiteLLM', 'ExceededBudget: User=x over budget. Spend=10, Budget=10'],
    [429, 'Cloudflare', 'AiError: you have used up your daily free allocation of 10,000 neurons'],
    [403, 'new-api', '该令牌额度已用尽', 'pre_consume_token_quota_failed'],
    [429, 'GLM, a plan', '已达到 5 小时的使用上限。您的限额将在 2026-01-20 10:00:00 重置。', '1308'],
  ],
  rate_limit: [
    [400, 'GLM, at once', '您当前使用该API的并发数过高，请降低并发'],
    [429, 'GLM', '您的账户已达到速率限制，请您控制请求频率', '1302'],
    [400, 'Bedrock', 'An error occurred (ThrottlingException) when calling the ConverseStream operation'],
  ],
  overloaded: [
    [429, 'Cerebras', "We're experiencing high traffic right now! Please try again soon.", 'queue_exceeded'],
    [429, 'Cloudflare', 'AiError: Capacity temporarily exceeded, please try again.'],
    [429, 'Mistral', 'Service tier capacity exceeded for this model.', '3505'],
  ],
  auth: [
    [403, 'OpenAI, a project', 'Project `p` does not have access to model `gpt-4`', 'model_not_found'],
    [
      403,
      'OpenAI, a country',
      'Country, region, or territory not supported',
      'unsupported_country_region_territory',
    ],
    [400, 'GLM', '身份验证失败', '1000'],
    [400, 'Gemini', 'API key expired. Please renew the API key.'],
    [403, 'AWS', 'The security token included in the request is invalid.'],
  ],
  content_filter: [
    [400, 'Volcengine', 'The request failed because the input text may contain sensitive information.'],
    [400, 'Volcengine, a risk', 'no', 'InputTextRiskDetection'],
    [400, 'Qianfan', 'no', 'unsafe_request'],
    [451, 'StepFun', 'The content you provided or machine outputted is blocked.'],
    [400, 'DeepSeek', 'Content Exists Risk'],
    [400, 'OpenAI', 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.'],
    [403, 'xAI', 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO'],
    [400, 'Anthropic', 'Output blocked by content filtering policy'],
    [446, 'a gateway', 'Guardrail blocked'],
  ],
  invalid_history: [
    [
      422,
      'Mistral, a member that it does not take',
      '{"detail":[{"type":"extra_forbidden","loc":["body","messages",31,"assistant","reasoning_content"]}]}',
    ],
    [400, 'Kimi behind a gateway', "Extra inputs are not permitted, field: 'messages[8].reasoning'"],
    [400, 'Groq', "('messages.2' : property 'reasoning_content' is unsupported)"],
    [400, 'Gemini', `Unknown name "extra_content" at 'messages[1].tool_calls[0]': Cannot find field.`],
    [400, 'DeepSeek, before it wanted it', 'Please remove the reasoning_content from your message'],
    [400, 'Mistral, empty', 'Assistant message must have either content or tool_calls, but not none.'],
    [400, 'MiniMax', "invalid params, tool result's tool id(call_x) not found (2013)"],
    [400, 'MiniMax, order', 'invalid params, tool call result does not follow tool call (2013)'],
    [400, 'Anthropic', 'messages: text content blocks must be non-empty'],
    [400, 'DeepSeek', 'Missing `reasoning_content` field in the assistant message at message index 3.'],
    [400, 'OpenAI, an id', "Invalid 'messages[3].tool_calls[0].id': string too long."],
    [400, 'Mistral, an id', 'Tool call id was call_x but must be a-z, A-Z, 0-9, with a length of 9.'],
    [400, 'Bedrock', 'Expected toolResult blocks at messages.2.content for the following Ids: tooluse_x'],
    [400, 'vLLM', 'Cannot set `add_generation_prompt` to True when the last message is from the assistant.'],
    [400, 'Claude', 'This model does not support assistant message prefill.'],
    [500, 'llama.cpp', 'Conversation roles must alternate user/assistant/user/assistant/...'],
  ],
  tool_use_failed: [
    [400, 'Groq, a schema', 'tool call validation failed: parameters for tool x did not match schema'],
  ],
  provider_error: [[424, 'TGI', 'Request failed during generation: Server error']],
  malformed_tool_call: [
    [500, 'Ollama', "error parsing tool call: raw='{', err=unexpected end of JSON input"],
  ],
  request_too_large: [
    [413, 'a gateway', 'The request is bigger than we take', 'invalid_request_error'],
    [400, 'Gemini', 'Request payload size exceeds the limit: 20971520 bytes.'],
  ],
  invalid_request: [
    [400, 'OpenAI, an effort', "Unsupported parameter: 'reasoning_effort' is not supported with this model."],
    [
      400,
      'OpenAI, an answer that would be too long',
      'max_tokens is too large: 100000. This model supports at most 16384 completion tokens.',
    ],
    [400, 'DeepSeek', 'Model Not Exist'],
    [404, 'OpenRouter', 'No endpoints found that support tool use.'],
    [400, 'Ollama', 'registry.ollama.ai/library/gemma:2b does not support tools'],
    [400, 'vLLM', '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'],
    [400, 'OpenAI, streaming', 'Your organization must be verified to stream this model.'],
    [400, 'Claude', 'Could not process image'],
    // Wires learn from these.
    [400, 'an image in an output', "Unknown parameter: 'input[2].output[0].image_url'."],
    [400, 'an output', "Invalid type for 'input[2].output': expected a string. Is it reasoning?"],
    [400, 'an id', "Missing required parameter: 'input[1].id' of the reasoning item."],
    [400, 'a mark', 'messages.2.content.0.text.cache_control: Extra inputs are not permitted'],
    [400, 'a result', 'messages.2.content.0.tool_result.content.1.image: Extra inputs are not permitted'],
    [400, 'vLLM, images', 'At most 0 image(s) may be provided in one request.'],
  ],
}

describe.each(Object.entries(ROWS))('%s', (errorClass, rows) => {
  test.each(rows)('%i %s: %s %s', (status, _, message, code) => {
    expect(errorOf(status, said(message, code)).class).toBe(errorClass)
  })
})

test.each([
  [1002, 'rate limit', 'rate_limit'],
  [1004, 'login fail: Please carry the API secret key', 'auth'],
  [1008, 'insufficient balance', 'quota'],
  [1026, 'input new_sensitive', 'content_filter'],
])("MiniMax's base_resp: %i %s", (status_code, status_msg, errorClass) => {
  expect(errorOf(400, { base_resp: { status_code, status_msg } }).class).toBe(errorClass)
})

describe('bug 19: the moment at which a limit is given back', () => {
  const soon = (unit: number): string => String(Math.round((Date.now() + 30_000) / unit))
  test.each<[string, Record<string, string>, number | undefined]>([
    ['OpenAI', { 'x-ratelimit-reset-requests': '6m0s', 'x-ratelimit-remaining-requests': '0' }, 360_000],
    [
      'only what is used up counts',
      {
        'x-ratelimit-reset-requests': '1h',
        'x-ratelimit-remaining-requests': '10',
        'x-ratelimit-reset-tokens': '1.5s',
        'x-ratelimit-remaining-tokens': '0',
      },
      1_500,
    ],
    ['Cerebras, in seconds', { 'x-ratelimit-reset-requests-day': '3000.5' }, 3_000_500],
    ['seconds, as the standard has it', { 'ratelimit-reset': '30' }, 30_000],
    ['a moment in seconds', { 'x-ratelimit-reset': soon(1_000) }, 30_000],
    ['a moment in milliseconds', { 'x-ratelimit-reset': soon(1) }, 30_000],
    [
      'Anthropic',
      { 'anthropic-ratelimit-tokens-reset': new Date(Date.now() + 30_000).toISOString() },
      30_000,
    ],
    ['Retry-After says more', { 'retry-after': '2', 'x-ratelimit-reset': '30' }, 2_000],
    ['nonsense', { 'x-ratelimit-reset': 'soon' }, undefined],
    ['one header for all', { ratelimit: '"api|inference";r=0;t=10' }, 10_000],
    ['one header for all, an older draft', { ratelimit: 'limit=100, remaining=0, reset=10' }, 10_000],
    ['one header for all, and something remains', { ratelimit: '"api";r=3;t=10' }, undefined],
    ['another spelling', { 'x-rate-limit-reset': '30' }, 30_000],
    ['set by two proxies', { 'retry-after': '30, 30' }, 30_000],
  ])('%s', (_, headers, expected) => {
    const { waitMs } = errorOf(429, said('Rate limit'), headers)
    if (expected === undefined) expect(waitMs).toBeUndefined()
    // Moments are counted from now, and the clock advances.
    else expect(Math.abs((waitMs ?? 0) - expected)).toBeLessThan(10_000)
  })

  test('a server that fails is not waited for by its limits', () => {
    expect(errorOf(500, said('no'), { 'x-ratelimit-reset': '30' }).waitMs).toBeUndefined()
  })

  test('Hugging Face loads a model', () => {
    const error = errorOf(503, { error: 'Model x is currently loading', estimated_time: 20.5 })
    expect(error).toMatchObject({ class: 'overloaded', retryable: true, waitMs: 20_500 })
  })
})
