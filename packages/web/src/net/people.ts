/** Everybody who has an account, for administrators. */
import { account, removal, type RemovedData, type UserList, userList } from '@sandlot/shared/api'
import { call } from './http.ts'

export interface NewPerson {
  name: string
  email: string
  password: string
  role: 'admin' | 'user'
}

export function fetchPeople(): Promise<UserList> {
  return call(userList, 'GET', '/api/users')
}

export async function addPerson(person: NewPerson): Promise<void> {
  await call(account, 'POST', '/api/users', person)
}

/** The account ends at once. What is left is done when `fetchPeople` says so. */
export async function removePerson(id: string, data: RemovedData): Promise<void> {
  await call(removal, 'DELETE', `/api/users/${encodeURIComponent(id)}?data=${data}`)
}
