import { type SecretList, secretList } from '@sandlot/shared/secrets'
import { z } from 'zod'
import { call } from './http.ts'

export async function fetchSecrets(): Promise<SecretList['secrets']> {
  return (await call(secretList, 'GET', '/api/secrets')).secrets
}

export async function setSecret(name: string, value: string): Promise<void> {
  await call(z.unknown(), 'PUT', `/api/secrets/${encodeURIComponent(name)}`, { value })
}

export async function removeSecret(name: string): Promise<void> {
  await call(z.unknown(), 'DELETE', `/api/secrets/${encodeURIComponent(name)}`)
}
