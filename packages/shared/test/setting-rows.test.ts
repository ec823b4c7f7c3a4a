import { expect, test } from 'vitest'
import { settingRows } from '../src/config.ts'
import { SETTINGS } from '../src/config/settings.ts'

const NAMES = [
  'PORT',
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
  'SANDLOT_CONFIG',
  'SANDLOT_MAX_TURNS',
  'SANDLOT_OIDC',
  'SANDLOT_OTHER_SETTINGS',
]

test('every setting has its value and where it comes from, and no secret is in it', () => {
  const rows = settingRows(
    NAMES,
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
  expect(rows).toMatchObject([
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
  expect(rows[0]?.meaning).toBe('0–65535; port to listen on (default 8002)')
  expect(JSON.stringify(rows)).not.toMatch(/sk-secret|pass@/)
})

test('an empty value is as none', () => {
  expect(settingRows(NAMES, { PORT: '', OPENAI_API_KEY: '' })).toMatchObject([
    { name: 'PORT', value: '8002', source: 'default' },
    { name: 'OPENAI_API_KEY', value: null, redacted: false, source: 'default' },
    {},
    {},
    {},
    {},
  ])
})

test('settings whose values are secrets', () => {
  expect(Object.keys(SETTINGS).filter((name) => SETTINGS[name]?.secret)).toEqual([
    'OPENAI_API_KEY',
    'OTEL_EXPORTER_OTLP_HEADERS',
    'SANDLOT_AGENT_TOKEN',
    'DATABASE_URL',
    'SANDLOT_BACKUP_PASSPHRASE',
    'SANDLOT_API_KEY',
    'SANDLOT_EGRESS_CREDENTIALS',
    'SANDLOT_OIDC',
    'SANDLOT_METRICS_TOKEN',
    'SANDLOT_SMTP_URL',
  ])
})
