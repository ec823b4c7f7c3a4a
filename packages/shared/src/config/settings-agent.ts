/** Settings of models, tools, approvals, stored chats and limits. */
import {
  type Setting,
  agent,
  choice,
  decimal,
  FLAG,
  internal,
  matching,
  readBy,
  secret,
  TEXT,
  url,
  whole,
} from './setting.ts'

const PLACE = matching(
  /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):\d{1,5}$/,
  'must be host:port, like 0.0.0.0:7443',
)

export const AGENT_SETTINGS = {
  OPENAI_MODEL: agent('name of the model; without it the demo model answers', TEXT),
  OPENAI_API_KEY: secret(agent('its key; may be empty for a local server', TEXT)),
  OPENAI_BASE_URL: agent(
    'any OpenAI-compatible endpoint (default: OpenAI’s)',
    url(/^https?$/, 'must be an address like https://api.example.org/v1'),
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: agent(
    'where to send spans by OTLP over HTTP, like http://127.0.0.1:4318 (default: none; docs/watching.md)',
    url(/^https?$/, 'must be an address like http://127.0.0.1:4318'),
  ),
  OTEL_EXPORTER_OTLP_HEADERS: secret(agent('headers for it: authorization=Bearer%20…', TEXT)),
  OTEL_SERVICE_NAME: agent('name of this Sandlot in spans', TEXT, 'sandlot'),
  SANDLOT_CONFIG: agent(
    'JSON file with structured settings, or a folder with sandlot.json and agent.env (default $SANDLOT_DATA/sandlot.json, which may be absent)',
    TEXT,
  ),
  SANDLOT_DEFAULT_MODE: agent(
    'mode of a new chat',
    choice('manual', 'auto-edit', 'auto', 'yolo'),
    'auto-edit',
  ),
  SANDLOT_TOOLS_ENABLED: agent('false: the model gets no tools', FLAG, 'true'),
  SANDLOT_TOOL_TIMEOUT_MS: agent('for tools that declare none', whole(1_000, 300_000), '10000'),
  SANDLOT_MAX_CONCURRENT_TOOLS: agent('reads that run together', whole(1, 10), '10'),
  SANDLOT_MODEL_IDLE_SECONDS: agent(
    'a model request that receives nothing for that long, or only keep-alives for twice as long, is retried',
    whole(1, 3_600),
    '60',
  ),
  SANDLOT_RESULT_CHARS: agent(
    'characters of one result that the model reads',
    whole(1_000, 200_000),
    '10000',
  ),
  SANDLOT_RESULT_LINES: agent('lines of one result that the model reads', whole(10, 20_000), '1000'),
  SANDLOT_OUTPUT_LIMIT: agent('stored bytes of one call’s output', whole(1, 2 ** 40), '268435456'),
  SANDLOT_STORE_MB: agent(
    'what one person’s chats may store: messages, outputs, images',
    whole(1, 2 ** 30),
    '4096',
  ),
  SANDLOT_APPROVAL_TTL: agent(
    'seconds after which an unanswered approval is denied',
    whole(1, 365 * 86_400),
    '86400',
  ),
  SANDLOT_AGENT_LISTEN: agent(
    'host:port, like 0.0.0.0:7443, where ai-agent also listens with TLS for services on other hosts; needs DATABASE_URL (default: none)',
    PLACE,
  ),
  SANDLOT_AGENT_ADVERTISE: agent(
    'host:port under which services reach SANDLOT_AGENT_LISTEN (default: that, with this host’s name for 0.0.0.0)',
    PLACE,
  ),
  SANDLOT_AGENT_TOKEN: secret(
    readBy('ai-agent', 'service')(
      'token that services show ai-agent there, the same for all; at least 16 characters (default: generated in the folder of keys)',
      matching(/^\S{16,}$/, 'must have at least 16 characters, none of them a space'),
    ),
  ),
  SANDLOT_REPLICA: agent(
    'name of this ai-agent among several on PostgreSQL: letters, digits, dashes (default: a new one at each start; up and compose set it)',
    matching(/^[a-z0-9][a-z0-9-]{0,39}$/, 'must be lower-case letters, digits and dashes, at most 40'),
  ),
  SANDLOT_SESSIONS_DB_MODE: internal(
    agent(
      'mode of sessions.db; 0640 if the service is another user, in ai-agent’s group (compose sets 0640)',
      choice('0600', '0640'),
      '0600',
    ),
  ),
} as const satisfies Record<string, Setting>

const DOLLARS = decimal('5 or 0.50')

/** Limits of use for everybody; 0 is no limit. Administrators change those of teams and people. */
export const LIMIT_SETTINGS = {
  SANDLOT_MAX_TURNS: agent('model answers per prompt', whole(1, 1_000), '100'),
  SANDLOT_MAX_COST: agent('US dollars per prompt, where the model’s price is known', DOLLARS, '0'),
  SANDLOT_MAX_PROMPT_SECONDS: agent('time per prompt, waiting included', whole(0, 30 * 86_400), '0'),
  SANDLOT_MAX_TOKENS_PER_DAY: agent('tokens per user and day', whole(0, 10 ** 12), '0'),
  SANDLOT_MAX_COST_PER_DAY: agent('US dollars per user and day', DOLLARS, '0'),
  SANDLOT_MAX_TOKENS_PER_MONTH: agent('tokens per user and month', whole(0, 10 ** 13), '0'),
  SANDLOT_MAX_COST_PER_MONTH: agent('US dollars per user and month', DOLLARS, '0'),
  SANDLOT_TOTAL_TOKENS_PER_DAY: agent('tokens of all users per day', whole(0, 10 ** 15), '0'),
  SANDLOT_TOTAL_COST_PER_DAY: agent('US dollars of all users per day', DOLLARS, '0'),
  SANDLOT_TOTAL_TOKENS_PER_MONTH: agent('tokens of all users per month', whole(0, 10 ** 15), '0'),
  SANDLOT_TOTAL_COST_PER_MONTH: agent('US dollars of all users per month', DOLLARS, '0'),
  SANDLOT_BUDGET_WARNING: agent(
    'percent of a daily or monthly limit at which people are warned; 0 = never',
    whole(0, 100),
    '80',
  ),
} as const satisfies Record<string, Setting>
