/**
 * All that is known about single providers and models. Everything else is read from the bytes. A
 * row matches by the host of the base URL or by the model's name; later rows win, so what an
 * endpoint is known to do beats what a model usually does.
 */
import type { WireName } from '@sandlot/shared/account/models-api'

/** An opening and a closing tag round thoughts that stand in the text. */
export type TagPair = readonly [open: string, close: string]

interface ReasoningReplay {
  /** In which assistant messages reasoning goes back to the provider. */
  when: 'never' | 'with_calls' | 'always'
  /** The members that this endpoint takes; all that came when absent. */
  fields?: readonly string[]
  /**
   * The member of a message with calls when the model did not reason, for endpoints that require
   * it.
   */
  missing?: { field: string; text: string }
}

export interface Profile {
  /**
   * Thoughts in the text, only at its very start. Empty: text is text, also when it says `<think>`.
   */
  thinkTags: readonly TagPair[]
  /** Deltas may repeat everything that was said before. */
  cumulative: boolean
  reasoning: ReasoningReplay
  /**
   * True if members of a call or a message next to the standard ones (Gemini's signatures) are sent
   * back.
   */
  extraContent: boolean
  /** True if images may be sent. */
  images: boolean
  /** True if Chat Completions of this endpoint knows strict mode for the arguments of tools. */
  strictTools: boolean
  /** The name that this endpoint knows for the limit of the answer. */
  maxTokensName: 'max_tokens' | 'max_completion_tokens'
  /**
   * Words that the model takes for how hard to think (`reasoning_effort`), weakest first. Empty: it
   * gets nothing.
   */
  thoughtLevels: readonly string[]
  /** Tokens of the longest answer, for an API that requires a limit. */
  longestAnswer: number
  /**
   * The form of thought that a Claude takes: as much as it finds necessary, a budget of tokens, or
   * none.
   */
  thinking: 'adaptive' | 'budget' | 'none'
}

/** The profile of an unknown endpoint: reasoning is sent back with calls, unchanged. */
export const DEFAULT_PROFILE: Profile = {
  thinkTags: [],
  cumulative: false,
  reasoning: { when: 'with_calls' },
  extraContent: true,
  images: true,
  strictTools: false,
  maxTokensName: 'max_tokens',
  thoughtLevels: [],
  longestAnswer: 32_000,
  thinking: 'none',
}

interface Row {
  /** Only over this API. */
  wire?: WireName
  host?: RegExp
  model?: RegExp
  profile: Partial<Profile>
}

const THINK: readonly TagPair[] = [
  ['<think>', '</think>'],
  ['<thinking>', '</thinking>'],
]
const NO_REASONING: ReasoningReplay = { when: 'never' }

/** A generation of Claude, over Anthropic's API. */
function claude(
  model: RegExp,
  longestAnswer: number,
  thinking: Profile['thinking'],
  thoughtLevels: readonly string[] = thinking === 'budget' ? ['low', 'medium', 'high'] : [],
): Row {
  return { wire: 'anthropic', model, profile: { longestAnswer, thinking, thoughtLevels } }
}

const ROWS: readonly Row[] = [
  // ── Models, wherever they run ──
  {
    // Open models that think aloud when the server in front of them does not take the thoughts out.
    model:
      /deepseek-?r1|r1-distill|qwq|qwen-?3|minimax-?m\d|glm-?(?:z1|4\.\d|[5-9])|smollm3|cogito|openthinker|marco-o1|exaone-deep|nemotron|hunyuan|hermes-?4|-thinking\b|-reason(?:ing|er)\b/i,
    profile: { thinkTags: THINK },
  },
  { model: /magistral/i, profile: { thinkTags: [['[THINK]', '[/THINK]'], ...THINK] } },
  { model: /seed-?oss/i, profile: { thinkTags: [['<seed:think>', '</seed:think>']] } },
  {
    // Refuses calls without it, and an empty one too.
    model: /kimi-k2[.-]?(?:5|6|7|8|9|thinking)|kimi-k[3-9]|kimi-for-coding|\bk2p\d/i,
    profile: {
      reasoning: {
        when: 'with_calls',
        fields: ['reasoning_content'],
        missing: { field: 'reasoning_content', text: '.' },
      },
    },
  },
  {
    // Wants it in every message of a conversation that thinks; text only.
    model: /deepseek-(?:v[4-9]|reasoner|chat)/i,
    profile: {
      images: false,
      reasoning: {
        when: 'always',
        fields: ['reasoning_content'],
        missing: { field: 'reasoning_content', text: '' },
      },
    },
  },
  {
    // The words that all of a family take; what single ones know beside them is for the
    // configuration to say.
    model: /(?:^|\/)(?:gpt-5(?!\S*chat)|o1(?!-(?:mini|preview))|o[34]\b|gpt-oss|gemini-(?:2\.5|[3-9]))/i,
    profile: { thoughtLevels: ['low', 'medium', 'high'] },
  },
  claude(/claude-(?:3(?!\d)|instant|2)/, 4_096, 'none'),
  claude(/claude-3[-.]5/, 8_192, 'none'),
  claude(/claude-(?:3[-.]7|(?:opus|sonnet|haiku)-4)/, 64_000, 'budget'),
  claude(/claude-opus-4(?:[-.][01](?!\d)|(?![-.]\d(?!\d)))/, 32_000, 'budget'),
  claude(/claude-(?:opus|sonnet)-4[-.]6/, 128_000, 'adaptive', ['low', 'medium', 'high', 'max']),
  claude(
    /claude-(?:(?:opus|sonnet|haiku)-(?:4[-.][7-9](?!\d)|[5-9](?!\d))|fable|mythos)/,
    128_000,
    'adaptive',
    ['low', 'medium', 'high', 'xhigh', 'max'],
  ),
  // ── Endpoints ──
  {
    host: /(?:^|\.)openai\.(?:com|azure\.com)$|\.cognitiveservices\.azure\.com$/,
    profile: {
      thinkTags: [],
      reasoning: NO_REASONING,
      extraContent: false,
      strictTools: true,
      maxTokensName: 'max_completion_tokens',
    },
  },
  { host: /(?:^|\.)deepseek\.com$/, profile: { thinkTags: [] } },
  {
    host: /(?:^|\.)(?:moonshot\.(?:cn|ai)|kimi\.com)$/,
    profile: { thinkTags: [] },
  },
  // Accumulated text for some of its upstreams (QwenLM/qwen-code#3896).
  { host: /(?:^|\.)(?:dashscope(?:-intl|-us)?|maas)\.aliyuncs\.com$/, profile: { cumulative: true } },
  {
    host: /^generativelanguage\.googleapis\.com$|-aiplatform\.googleapis\.com$/,
    profile: { thinkTags: [['<thought>', '</thought>']], reasoning: NO_REASONING },
  },
  // These refuse members that they do not know.
  {
    host: /(?:^|\.)(?:groq\.com|mistral\.ai|cerebras\.ai)$/,
    profile: { reasoning: NO_REASONING, extraContent: false },
  },
  {
    host: /(?:^|\.)openrouter\.ai$/,
    profile: { reasoning: { when: 'with_calls', fields: ['reasoning_details', 'reasoning'] } },
  },
]

// ── Calls that a server leaves in the text ──────────────────────────────────────────────────────

/**
 * The tokens round a call, as a model's template has them, for servers that do not read them;
 * DeepSeek's wide bars and spaces as `|` and `_`.
 */
export interface CallEnvelope {
  /** The call's own text begins behind it, or with it where it ends in `=`. */
  open: string
  /**
   * Closing tokens after the call's own text, in this order. Stop tokens are left out: servers do
   * so too.
   */
  close: readonly string[]
  /** Between name and arguments, where these are no JSON object with both. */
  between?: RegExp
}

const pair = (name: string): CallEnvelope => ({ open: `<${name}>`, close: [`</${name}>`] })
/**
 * Hermes and Qwen (JSON), Qwen Coder (`<function=x>`) and GLM (`x<arg_key>`); MiniMax M1 and Jamba;
 * and by their names; Nemotron; DeepSeek V3.2 and later.
 */
const PAIRS =
  'tool_call tool_calls function_calls minimax:tool_call seed:tool_call longcat_tool_call TOOLCALL |DSML|function_calls |DSML|tool_calls'

export const CALL_ENVELOPES: readonly CallEnvelope[] = [
  ...PAIRS.split(' ').map(pair),
  // Without the outer pair, or with its end alone: Qwen Coder, Llama.
  { open: '<function=', close: [] },
  { open: '<function=', close: ['</tool_call>'] },
  {
    // DeepSeek R1 and V3 (`function`, the name, JSON in a block), V3.1 (name and JSON).
    open: '<|tool_call_begin|>',
    close: ['<|tool_call_end|>', '<|tool_calls_end|>'],
    between: /<\|tool_sep\|>|\n/,
  },
  {
    // Kimi.
    open: '<|tool_call_begin|>',
    close: ['<|tool_call_end|>', '<|tool_calls_section_end|>'],
    between: /<\|tool_call_argument_begin\|>/,
  },
  {
    // Harmony (gpt-oss), also where a server takes its tokens out.
    open: 'to=functions.',
    close: [],
    between: /(?=[\s<{])(?:\s|<\|(?:channel|constrain|message)\|>|commentary|json|code)*/,
  },
  // Mistral: a list, or since 2025 name and arguments.
  { open: '[TOOL_CALLS]', close: [], between: /(?:\[CALL_ID\][^[]*)?\[ARGS\]|(?=\{)/ },
  { open: '<|python_tag|>', close: [] }, // Llama
  { open: '<|tool_call|>', close: [] }, // Granite
  { open: '<|tool_call|>', close: ['<|/tool_call|>'] }, // Phi
  { open: '<|action_start|><|plugin|>', close: ['<|action_end|>'] }, // InternLM
  { open: '<|START_ACTION|>', close: ['<|END_ACTION|>'] }, // Command R
]

/** Ends of an answer that a server may leave behind it. */
export const STOP_TOKENS: readonly string[] =
  '<|call|> <|im_end|> <|eot_id|> <|eom_id|> <|end|> <|endoftext|> <|end_of_text|> <|end_of_sentence|> </s> <end_of_turn> [e~['.split(
    ' ',
  )

/** The profile of this model at this endpoint, with the overrides of `own`. */
export function profileFor(
  baseUrl: URL,
  model: string,
  own: Partial<Profile> = {},
  wire: WireName = 'chat',
): Profile {
  const known = ROWS.filter(
    (row) =>
      (row.wire ?? wire) === wire &&
      (row.host?.test(baseUrl.hostname) === true || row.model?.test(model) === true),
  )
  const set = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined))
  return Object.assign({ ...DEFAULT_PROFILE }, ...known.map((row) => row.profile), set) as Profile
}
