// pod-handler FOLDER answers reviews over TLS: it decodes the review and its pod, and admits every pod.
//
// It is what a webhook in Go costs before it decides anything. FOLDER holds tls.crt and tls.key; the first line on
// standard output is its address as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"

	admission "k8s.io/api/admission/v1"
	core "k8s.io/api/core/v1"
)

func admit(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var review admission.AdmissionReview
	var pod core.Pod
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := admission.AdmissionReview{
		TypeMeta: review.TypeMeta,
		Response: &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true},
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		log.Print(err)
	}
}

func main() {
	folder := os.Args[1]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("{\"admission\": \"https://%s\", \"ca\": %q}\n", listener.Addr(), filepath.Join(folder, "ca.crt"))
	server := &http.Server{Handler: http.HandlerFunc(admit)}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // as the webhook's own connections
	server.Protocols = protocols
	log.Fatal(server.ServeTLS(listener, filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")))
}
