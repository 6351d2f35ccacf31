// Package sigma implements Sigma.
package sigma
