// OpenSSL, and functions for what its headers offer only as macros.
#pragma once
// Imports Swift's Glibc module before the headers below. They include headers of the C library, whose declarations
// would otherwise belong to this module, too: Swift would see each type twice.
#pragma clang module import SwiftGlibc
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

// Swift does not import macros with parameters, so each function below calls one, or expands it.

/// Options of every context: no compression (CRIME), no renegotiation (RFC 7457 §2.10), the server's order of ciphers.
static const uint64_t hub_ssl_options =
    SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA;

/// Sets the key and digest of the MAC that authenticates session tickets: HMAC-SHA-256 with a key of 32 bytes
/// (SSL_CTX_set_tlsext_ticket_key_evp_cb(3)).
static inline int hub_ticket_mac(EVP_MAC_CTX *mac, const unsigned char *key) {
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key, 32),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
      OSSL_PARAM_construct_end(),
  };
  return EVP_MAC_CTX_set_params(mac, parameters);
}

/// Sets the function that OpenSSL calls, with `argument`, when it has read a ClientHello's server name
/// (SSL_CTX_set_tlsext_servername_callback(3)).
static inline void hub_ssl_choose_by_name(SSL_CTX *context, int (*choose)(SSL *, int *, void *), void *argument) {
  SSL_CTX_set_tlsext_servername_callback(context, choose);
  SSL_CTX_set_tlsext_servername_arg(context, argument);
}

/// Sets the function that OpenSSL calls, with `argument`, when a client asks for the certificate's OCSP response
/// (SSL_CTX_set_tlsext_status_cb(3)).
static inline void hub_ssl_staple(SSL_CTX *context, int (*staple)(SSL *, void *), void *argument) {
  SSL_CTX_set_tlsext_status_cb(context, staple);
  SSL_CTX_set_tlsext_status_arg(context, argument);
}

/// Has OpenSSL send a copy of an OCSP response with the certificate. Gives 1, or 0 where memory is short.
static inline int hub_ssl_set_status(SSL *ssl, const unsigned char *response, size_t count) {
  void *copy = OPENSSL_memdup(response, count);
  if (copy == NULL) return 0;
  return SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)count) == 1;
}

/// The library of OpenSSL that reported an error (ERR_LIB_…), and its reason.
static inline int hub_err_library(unsigned long error) { return ERR_GET_LIB(error); }
static inline int hub_err_reason(unsigned long error) { return ERR_GET_REASON(error); }
/// The text for a reason of libssl; NULL where it is unknown.
static inline const char *hub_ssl_reason(int reason) {
  return ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason));
}
