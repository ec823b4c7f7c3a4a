/** Settings of models, tools, approvals and stored chats. */
import { type Setting, choice, FLAG, matching, TEXT, url, whole } from './setting.ts'

const PLACE = matching(
  /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):\d{1,5}$/,
  'must be host:port, like 0.0.0.0:7443',
)

export const AGENT_SETTINGS = {
  OPENAI_MODEL: {
    meaning: 'name of the model; without it the demo model answers',
    schema: TEXT,
    processes: ['ai-agent'],
  },
  OPENAI_API_KEY: {
    meaning: 'its key; may be empty for a local server',
    schema: TEXT,
    processes: ['ai-agent'],
    secret: true,
  },
  OPENAI_BASE_URL: {
    meaning: 'any OpenAI-compatible endpoint (default: OpenAI’s)',
    schema: url(/^https?$/, 'must be an address like https://api.example.org/v1'),
    processes: ['ai-agent'],
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    meaning:
      'where to send spans by OTLP over HTTP, like http://127.0.0.1:4318 (default: none; docs/watching.md)',
    schema: url(/^https?$/, 'must be an address like http://127.0.0.1:4318'),
    processes: ['ai-agent'],
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    meaning: 'headers for it: authorization=Bearer%20…',
    schema: TEXT,
    processes: ['ai-agent'],
    secret: true,
  },
  OTEL_SERVICE_NAME: {
    meaning: 'name of this Sandlot in spans',
    schema: TEXT,
    default: 'sandlot',
    processes: ['ai-agent'],
  },
  SANDLOT_CONFIG: {
    meaning:
      'JSON file with structured settings, or a folder with sandlot.json and agent.env (default $SANDLOT_DATA/sandlot.json, which may be absent)',
    schema: TEXT,
    processes: ['ai-agent'],
  },
  SANDLOT_DEFAULT_MODE: {
    meaning: 'mode of a new chat',
    schema: choice('manual', 'auto-edit', 'auto', 'yolo'),
    default: 'auto-edit',
    processes: ['ai-agent'],
  },
  SANDLOT_TOOLS_ENABLED: {
    meaning: 'false: the model gets no tools',
    schema: FLAG,
    default: 'true',
    processes: ['ai-agent'],
  },
  SANDLOT_TOOL_TIMEOUT_MS: {
    meaning: 'for tools that declare none',
    schema: whole(1_000, 300_000),
    default: '10000',
    processes: ['ai-agent'],
  },
  SANDLOT_MAX_CONCURRENT_TOOLS: {
    meaning: 'reads that run together',
    schema: whole(1, 10),
    default: '10',
    processes: ['ai-agent'],
  },
  SANDLOT_MODEL_IDLE_SECONDS: {
    meaning:
      'a model request that receives nothing for that long, or only keep-alives for twice as long, is retried',
    schema: whole(1, 3_600),
    default: '60',
    processes: ['ai-agent'],
  },
  SANDLOT_RESULT_CHARS: {
    meaning: 'characters of one result that the model reads',
    schema: whole(1_000, 200_000),
    default: '10000',
    processes: ['ai-agent'],
  },
  SANDLOT_RESULT_LINES: {
    meaning: 'lines of one result that the model reads',
    schema: whole(10, 20_000),
    default: '1000',
    processes: ['ai-agent'],
  },
  SANDLOT_OUTPUT_LIMIT: {
    meaning: 'stored bytes of one call’s output',
    schema: whole(1, 2 ** 40),
    default: '268435456',
    processes: ['ai-agent'],
  },
  SANDLOT_STORE_MB: {
    meaning: 'what one person’s chats may store: messages, outputs, images',
    schema: whole(1, 1024 * 1024 * 1024),
    default: '4096',
    processes: ['ai-agent'],
  },
  SANDLOT_APPROVAL_TTL: {
    meaning: 'seconds after which an unanswered approval is denied',
    schema: whole(1, 365 * 86_400),
    default: '86400',
    processes: ['ai-agent'],
  },
  SANDLOT_AGENT_LISTEN: {
    meaning:
      'host:port, like 0.0.0.0:7443, where ai-agent also listens with TLS for services on other hosts; needs DATABASE_URL (default: none)',
    schema: PLACE,
    processes: ['ai-agent'],
  },
  SANDLOT_AGENT_ADVERTISE: {
    meaning:
      'host:port under which services reach SANDLOT_AGENT_LISTEN (default: that, with this host’s name for 0.0.0.0)',
    schema: PLACE,
    processes: ['ai-agent'],
  },
  SANDLOT_AGENT_TOKEN: {
    meaning:
      'token that services show ai-agent there, the same for all; at least 16 characters (default: generated in the folder of keys)',
    schema: matching(/^\S{16,}$/, 'must have at least 16 characters, none of them a space'),
    processes: ['ai-agent', 'service'],
    secret: true,
  },
  SANDLOT_REPLICA: {
    meaning:
      'name of this ai-agent among several on PostgreSQL: letters, digits, dashes (default: a new one at each start; up and compose set it)',
    schema: matching(
      /^[a-z0-9][a-z0-9-]{0,39}$/,
      'must be lower-case letters, digits and dashes, at most 40',
    ),
    processes: ['ai-agent'],
  },
  SANDLOT_SESSIONS_DB_MODE: {
    meaning:
      'mode of sessions.db; 0640 if the service is another user, in ai-agent’s group (compose sets 0640)',
    schema: choice('0600', '0640'),
    default: '0600',
    processes: ['ai-agent'],
    internal: true,
  },
} as const satisfies Record<string, Setting>
