import { describe, expect, test } from 'vitest'
import { CONFIG_NAMES } from '@sandlot/shared/config-names'
import { childEnvironment, namesFor } from '../src/child-env.ts'

const environment = {
  PATH: '/bin',
  HOME: '/home/someone',
  HTTPS_PROXY: 'http://proxy:3128',
  no_proxy: 'localhost',
  OPENAI_API_KEY: 'sk-model-key',
  OPENAI_API_KEY_FILE: '/secrets/model',
  OPENAI_MODEL: 'some-model',
  DOCKER_HOST: 'unix:///var/run/docker.sock',
  PORT: '9000',
  LOG_LEVEL: 'debug',
  SANDLOT_DATA: '/data',
  SANDLOT_TEST_SEED: 'a setting of the command line',
  SANDLOT_PUBLIC_URL: 'https://chat.example.org',
  CLOUD_PASSWORD: 'somebody else’s',
  EMPTY: '',
}

describe('what each process may know', () => {
  test('the service has neither the model’s key nor the engine', () => {
    expect(childEnvironment('service', environment)).toEqual({
      NODE_ENV: 'production',
      PATH: '/bin',
      HOME: '/home/someone',
      LOG_LEVEL: 'debug',
      SANDLOT_DATA: '/data',
      PORT: '9000',
      SANDLOT_PUBLIC_URL: 'https://chat.example.org',
    })
  })

  test('ai-agent has them, and nothing of the service', () => {
    expect(childEnvironment('ai-agent', environment)).toEqual({
      NODE_ENV: 'production',
      PATH: '/bin',
      HOME: '/home/someone',
      LOG_LEVEL: 'debug',
      SANDLOT_DATA: '/data',
      HTTPS_PROXY: 'http://proxy:3128',
      no_proxy: 'localhost',
      OPENAI_API_KEY: 'sk-model-key',
      OPENAI_API_KEY_FILE: '/secrets/model',
      OPENAI_MODEL: 'some-model',
      DOCKER_HOST: 'unix:///var/run/docker.sock',
    })
  })

  test('every setting reaches somebody, or is one of the command line', () => {
    const commandLine = [
      'SANDLOT_APT_MIRROR',
      'SANDLOT_BUILD_NETWORK',
      'SANDLOT_TEST_SEED',
      'SANDLOT_TEST_FULL',
    ]
    const reached = new Set([...namesFor('ai-agent'), ...namesFor('service'), ...commandLine])
    expect(Object.keys(CONFIG_NAMES).filter((name) => !reached.has(name))).toEqual([])
  })
})
