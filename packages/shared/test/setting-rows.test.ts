import { expect, test } from 'vitest'
import { z } from 'zod'
import { settingRows, wholeNumber } from '../src/config.ts'
import { CONFIG_NAMES, isSecretName } from '../src/config/names.ts'

const schema = z.object({
  PORT: wholeNumber(1, 65_535).default(8002),
  OPENAI_API_KEY: z.string().optional(),
  OPENAI_BASE_URL: z.string().optional(),
  SANDLOT_CONFIG: z.string().optional(),
  SANDLOT_MAX_TURNS: wholeNumber(1, 1000).default(100),
  SANDLOT_OIDC: z.string().optional(),
})

test('every setting has its value and where it comes from, and no secret is in it', () => {
  const rows = settingRows(
    schema,
    {
      OPENAI_API_KEY: 'sk-secret',
      OPENAI_BASE_URL: 'https://ada:pass@models.example.org/v1',
      SANDLOT_MAX_TURNS: '20',
      SANDLOT_OIDC_FILE: '/run/secrets/oidc',
      SANDLOT_CONFIG: '/etc/sandlot',
      SANDLOT_ENV_FILE_NAMES: 'OPENAI_API_KEY,HOST',
    },
    { path: '/etc/sandlot/agent.env', names: new Set(['SANDLOT_MAX_TURNS']) },
  )
  expect(rows).toEqual([
    { name: 'PORT', value: '8002', redacted: false, source: 'default', restart: true },
    { name: 'OPENAI_API_KEY', value: null, redacted: true, source: 'env_file', restart: true },
    {
      name: 'OPENAI_BASE_URL',
      value: 'https://…@models.example.org/v1',
      redacted: false,
      source: 'environment',
      restart: true,
    },
    { name: 'SANDLOT_CONFIG', value: '/etc/sandlot', redacted: false, source: 'environment', restart: true },
    {
      name: 'SANDLOT_MAX_TURNS',
      value: '20',
      redacted: false,
      source: 'agent_env',
      from: '/etc/sandlot/agent.env',
      restart: true,
    },
    {
      name: 'SANDLOT_OIDC',
      value: null,
      redacted: true,
      source: 'value_file',
      from: '/run/secrets/oidc',
      restart: true,
    },
  ])
  expect(JSON.stringify(rows)).not.toMatch(/sk-secret|pass@/)
})

test('an empty value is as none', () => {
  expect(settingRows(schema, { PORT: '', OPENAI_API_KEY: '' })).toMatchObject([
    { name: 'PORT', value: '8002', source: 'default' },
    { name: 'OPENAI_API_KEY', value: null, redacted: false, source: 'default' },
    {},
    {},
    {},
    {},
  ])
})

test('which names are of secrets', () => {
  expect(Object.keys(CONFIG_NAMES).filter(isSecretName).toSorted()).toEqual([
    'SANDLOT_AGENT_TOKEN',
    'SANDLOT_API_KEY',
    'SANDLOT_BACKUP_PASSPHRASE',
    'SANDLOT_EGRESS_CREDENTIALS',
    'SANDLOT_KUBERNETES_PULL_SECRET',
    'SANDLOT_METRICS_TOKEN',
    'SANDLOT_OIDC',
    'SANDLOT_SMTP_URL',
  ])
  expect(['OPENAI_API_KEY', 'GOOGLE_CLIENT_SECRET', 'DATABASE_URL'].every(isSecretName)).toBe(true)
  expect(['SANDLOT_MAX_TOKENS', 'SANDLOT_MAX_TOKENS_PER_DAY', 'PORT'].some(isSecretName)).toBe(false)
})
